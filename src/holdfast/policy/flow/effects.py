"""Whether running a part of a program can change anything but its result."""

import ast

from holdfast.policy.flow.known_names import COMPUTING, COMPUTING_METHODS, COPIES, TEST_METHODS, TESTS

_READING_BUILTINS = TESTS | COPIES | COMPUTING | {"range", "enumerate", "zip", "max", "min", "sum", "dict"}
READING_METHODS = TEST_METHODS | COMPUTING_METHODS | {"get", "items", "keys", "values", "copy"}


def has_effects(part: ast.AST) -> bool:
    """Whether it may: it assigns what others see, calls what is not known to only read, or raises."""
    return any(_has_effect(node) for node in ast.walk(part))


def _has_effect(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name not in _READING_BUILTINS
        case ast.Call(func=ast.Attribute(attr=name)):
            return name not in READING_METHODS
        case ast.Subscript(ctx=ctx):
            return not isinstance(ctx, ast.Load)
        case ast.Call() | ast.NamedExpr() | ast.AugAssign() | ast.Global() | ast.Nonlocal():
            return True
        case ast.Raise() | ast.Try() | ast.With() | ast.Assert():
            return True
        case _:
            return False
