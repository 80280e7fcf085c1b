"""Scopes of a program: which variable a name means."""

import ast
from collections.abc import Iterator

FunctionNode = ast.FunctionDef | ast.Lambda
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_NAMELESS = frozenset({"ctx", "op", "ops", "id", "attr", "arg"})
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}
"""The fields of each kind of node that can have names in them."""


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


class FunctionNames:
    """The names that a function assigns, and those that it takes from outside."""

    def __init__(self) -> None:
        self.own: set[str] = set()
        self.global_names: set[str] = set()
        self.outer: set[str] = set()


class ProgramNames:
    """The names of a program, found in one walk."""

    def __init__(self, tree: ast.Module) -> None:
        self.stored: set[str] = set()
        """Names that the program assigns anywhere."""
        self.in_functions: set[str] = set()
        """Names that functions and generators use: they run at another time than their place in the program suggests."""
        self._functions: dict[int, FunctionNames] = {}
        for statement in tree.body:
            self._visit(statement, FunctionNames(), is_later=False)

    def function_scope(self, node: FunctionNode, number: int, parent: Scope) -> Scope:
        """The scope of a function or a lambda."""
        names = self._functions[id(node)]
        scope = Scope(number, parent, names.own - names.outer)
        scope.global_names = names.global_names
        return scope

    def _visit(self, node: ast.AST, function: FunctionNames, *, is_later: bool) -> None:
        """Note the names of a node. `function` is the one that it belongs to."""
        match node:
            case ast.Name(id=name, ctx=ctx):
                if is_later:
                    self.in_functions.add(name)
                if isinstance(ctx, ast.Store):
                    self._store(name, function)
                elif isinstance(ctx, ast.Del):
                    function.own.add(name)
                return
            case ast.Constant():
                return
            case ast.FunctionDef() | ast.Lambda():
                self._visit_function(node, function, is_later=is_later)
                return
            case ast.GeneratorExp():
                is_later = True
            case ast.comprehension(target=target, iter=iterable, ifs=tests):
                # Its target is its own; what it assigns with `:=` is the function's.
                self._visit(target, FunctionNames(), is_later=is_later)
                for each in (iterable, *tests):
                    self._visit(each, function, is_later=is_later)
                return
            case ast.ExceptHandler(name=str(name)):
                self._store(name, function)
            case ast.alias(name=name, asname=asname):
                self._store(asname or name.partition(".")[0], function)
            case ast.Global(names=names):
                function.global_names.update(names)
                self.in_functions.update(names)
            case ast.Nonlocal(names=names):
                function.outer.update(names)
                self.in_functions.update(names)
            case _:
                pass
        for child in _children(node):
            self._visit(child, function, is_later=is_later)

    def _visit_function(self, node: FunctionNode, outer: FunctionNames, *, is_later: bool) -> None:
        if isinstance(node, ast.FunctionDef):
            self._store(node.name, outer)
        own = self._functions[id(node)] = FunctionNames()
        own.own.update(parameters_of(node.args))
        body: list[ast.AST] = [*node.body] if isinstance(node, ast.FunctionDef) else [node.body]
        for child in body:
            self._visit(child, own, is_later=True)
        # Decorators, defaults and annotations belong to the function around it.
        for child in _children(node, "body"):
            self._visit(child, outer, is_later=True)

    def _store(self, name: str, function: FunctionNames) -> None:
        function.own.add(name)
        self.stored.add(name)


_ASSIGN_ANY = frozenset(
    {"exec", "eval", "globals", "locals", "vars", "setattr", "__import__", "__builtins__"}
)
"""Names with which a program can assign any name."""


def assigned_names(code: str) -> set[str] | None:
    """Every name that a program may assign, whatever else it does. None if it may be any."""
    try:
        nodes = list(ast.walk(ast.parse(code)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    found: set[str] = set()
    for node in nodes:
        match node:
            case ast.Name(id=name) if name in _ASSIGN_ANY:
                return None
            case ast.alias(name="*"):
                return None
            case ast.Name(id=name, ctx=ctx):
                if not isinstance(ctx, ast.Load):
                    found.add(name)
            case ast.alias(name=name, asname=asname):
                found.add(asname or name.partition(".")[0])
            case _:  # definitions, handlers and patterns
                found.update(
                    each for field in ("name", "rest") if isinstance(each := getattr(node, field, None), str)
                )
    return found


def parameters_of(arguments: ast.arguments) -> list[str]:
    """The names of all parameters."""
    plain = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [each.arg for each in (*plain, arguments.vararg, arguments.kwarg) if each is not None]


def _children(node: ast.AST, *skipped: str) -> Iterator[ast.AST]:
    kind = type(node)
    fields = _FIELDS.get(kind)
    if fields is None:
        fields = _FIELDS[kind] = tuple(each for each in node._fields if each not in _NAMELESS)
    for field in fields:
        value = getattr(node, field, None)
        if field in skipped or value is None:
            continue
        if isinstance(value, list):
            yield from (each for each in value if isinstance(each, ast.AST))
        elif isinstance(value, ast.AST):
            yield value
