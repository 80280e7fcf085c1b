"""Scopes of a program: which variable a name means."""

import ast
from collections.abc import Iterator

FunctionNode = ast.FunctionDef | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class Scope:
    """The names of the module, a function or a comprehension."""

    def __init__(
        self, number: int, parent: "Scope | None", names: set[str], *, is_comprehension: bool = False
    ) -> None:
        self.number = number
        self.parent = parent
        self.names = names
        self.is_comprehension = is_comprehension
        self.global_names: set[str] = set()

    def find(self, name: str) -> "Scope":
        """The scope that a name belongs to; the module's, if none has it."""
        scope = self
        while scope.parent is not None:
            if name in scope.global_names:
                return scope.module
            if name in scope.names:
                return scope
            scope = scope.parent
        return scope

    @property
    def module(self) -> "Scope":
        """The outermost scope."""
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope


def function_scope(node: FunctionNode, number: int, parent: Scope) -> Scope:
    """The scope of a function or a lambda."""
    body: list[ast.AST] = [node.body] if isinstance(node, ast.Lambda) else [*node.body]
    scope = Scope(number, parent, set(parameters_of(node.args)))
    outer: set[str] = set()
    for child in _own_nodes(body):
        match child:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                scope.names.add(name)
            case ast.FunctionDef(name=name) | ast.ExceptHandler(name=str(name)):
                scope.names.add(name)
            case ast.alias(name=name, asname=asname):
                scope.names.add(asname or name.partition(".")[0])
            case ast.Global(names=names):
                scope.global_names.update(names)
            case ast.Nonlocal(names=names):
                outer.update(names)
            case _:
                pass
    scope.names -= outer
    return scope


def parameters_of(arguments: ast.arguments) -> list[str]:
    """The names of all parameters."""
    plain = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [each.arg for each in (*plain, arguments.vararg, arguments.kwarg) if each is not None]


def stored_names(tree: ast.Module) -> set[str]:
    """Names that the program assigns anywhere."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()):
                found.add(name)
            case ast.FunctionDef(name=name) | ast.ExceptHandler(name=str(name)):
                found.add(name)
            case ast.alias(name=name, asname=asname):
                found.add(asname or name.partition(".")[0])
            case _:
                pass
    return found


def names_in_functions(tree: ast.Module) -> set[str]:
    """Names that functions and generators use: they run at another time than their place in the program suggests."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.Lambda | ast.GeneratorExp):
            for child in ast.walk(node):
                if isinstance(child, ast.Name):
                    found.add(child.id)
                elif isinstance(child, ast.Global | ast.Nonlocal):
                    found.update(child.names)
    return found


def _own_nodes(body: list[ast.AST]) -> Iterator[ast.AST]:
    """The nodes of a function without those of functions in it; what a comprehension assigns with `:=` is the function's."""
    waiting = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            continue
        targets: list[ast.expr] = []
        if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            targets = [each.target for each in node.generators]
        own = {id(child) for target in targets for child in ast.walk(target)}
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.comprehension):
                waiting += [child.iter, *child.ifs]
            elif id(child) not in own:
                waiting.append(child)
