"""The expander: from data to syntax tree nodes. It runs macros, rewrites sugar, and reports malformed forms with their place.

The names of forms are reserved, so a form has the same meaning everywhere. The names of macros are reserved while they exist.
"""

from collections.abc import Callable
from typing import Literal

from holdfast.guests.lisp.data import EMPTY, Datum, Pair, Symbol, kind_of
from holdfast.guests.lisp.errors import LispSyntaxError, SourcePlace
from holdfast.guests.lisp.lang.nodes import (
    Application,
    Assignment,
    Bindings,
    Builtin,
    Conditional,
    Constant,
    Definition,
    Either,
    Lambda,
    Node,
    Sequence,
    Variable,
)
from holdfast.guests.lisp.lang.sugar import SUGAR, BuiltinName, arguments_of, items_of
from holdfast.guests.lisp.lang.trampoline import Recursive, run_trampoline
from holdfast.guests.lisp.vm.environment import Closure, Root

MAX_NESTED_SCOPES = 250
"""Nesting of procedures and lets: a variable lookup takes a step for each."""
MAX_NAMES = 250
"""Parameters of a procedure, and definitions in a body."""

ExpandMacro = Callable[[Closure, list[Datum]], Datum]
Position = Literal["top", "body", "inside"]
"""The position of a form: definitions are allowed at the top and directly in a body."""


def expand(form: Datum, root: Root, expand_macro: ExpandMacro) -> Lambda:
    """Expand a top-level form into the body of a procedure without parameters."""
    body = run_trampoline(_Expander(root, expand_macro).expand(form, "top", None))
    place = form.place if isinstance(form, Pair) else None
    return Lambda(name="", parameters=(), rest=None, defined=(), body=body, place=place)


def is_macro_definition(form: Datum) -> bool:
    """Whether this form may change the meaning of the forms after it."""
    return isinstance(form, Pair) and form.first == Symbol("define-macro")


class _Expander:
    def __init__(self, root: Root, expand_macro: ExpandMacro) -> None:
        self._root = root
        self._expand_macro = expand_macro
        self._nested = 0
        self._defined: list[list[str]] = []

    def expand(self, form: Datum, position: Position, place: SourcePlace | None) -> Recursive[Node]:
        """The node of a form; `place` is the place of the enclosing form."""
        while isinstance(form, Pair):
            place = form.place or place
            head = form.first.name if isinstance(form.first, Symbol) else ""
            if head in _FLAT:
                return _FLAT[head](form)
            if head in _CORE:
                return (yield from _CORE[head](self, form, position))
            if head in SUGAR:
                form = SUGAR[head](form)
            elif head in self._root.macros:
                form = self._expand_macro(self._root.macros[head], items_of(form.rest, place))
            else:
                function, *arguments = yield from self._each(items_of(form, place), "inside", place)
                return Application(function, tuple(arguments), place)
        return self._atom(form, place)

    def _each(
        self, forms: list[Datum], position: Position, place: SourcePlace | None
    ) -> Recursive[list[Node]]:
        """The nodes of several forms. Atoms, which are the most frequent, need no recursion."""
        nodes: list[Node] = []
        for form in forms:
            if isinstance(form, Pair):
                nodes.append((yield self.expand(form, position, place)))
            else:
                nodes.append(self._atom(form, place))
        return nodes

    def _atom(self, form: Datum, place: SourcePlace | None) -> Node:
        if isinstance(form, Symbol):
            if form.name in RESERVED or form.name in self._root.macros:
                raise LispSyntaxError(f"{form.name!r} is a form, not a value", place=place)
            return Variable(form.name, place)
        if isinstance(form, BuiltinName):
            return Builtin(form.name)
        if form is EMPTY:
            raise LispSyntaxError("() is not a call; write '() for the empty list", place=place)
        return Constant(form)

    def _if(self, form: Pair, position: Position) -> Recursive[Node]:
        parts = arguments_of(form, "(if test then else)", at_least=2, at_most=3)
        test, then, *otherwise = yield from self._each(parts, "inside", form.place)
        return Conditional(test, then, otherwise[0] if otherwise else Constant(None))

    def _or(self, form: Pair, position: Position) -> Recursive[Node]:
        items = items_of(form.rest, form.place)
        if not items:
            return Constant(False)
        nodes = yield from self._each(items, "inside", form.place)
        result = nodes.pop()
        for node in reversed(nodes):
            result = Either(node, result)
        return result

    def _begin(self, form: Pair, position: Position) -> Recursive[Node]:
        items = items_of(form.rest, form.place)
        if not items:
            return Constant(None)
        return (yield from self._sequence(items, position, form.place))

    def _sequence(self, items: list[Datum], position: Position, place: SourcePlace | None) -> Recursive[Node]:
        nodes = yield from self._each(items, position, place)
        return nodes[0] if len(nodes) == 1 else Sequence(tuple(nodes))

    def _define(self, form: Pair, position: Position) -> Recursive[Node]:
        target, *rest = arguments_of(
            form, "(define name value) or (define (name parameter ...) body ...)", at_least=1
        )
        if isinstance(target, Pair):
            name = self._name(target.first, form.place)
            self._check_definition(name, position, form.place)
            value: Node = yield from self._procedure(name, target.rest, rest, form.place)
            return Definition(name, value)
        name = self._name(target, form.place)
        if len(rest) > 1:
            raise LispSyntaxError("a definition has one value; write (define name value)", place=form.place)
        self._check_definition(name, position, form.place)
        if rest and isinstance(rest[0], Pair) and rest[0].first in (Symbol("lambda"), Symbol("λ")):
            parameters, *body = arguments_of(rest[0], "(lambda (parameter ...) body ...)", at_least=2)
            return Definition(name, (yield from self._procedure(name, parameters, body, rest[0].place)))
        value = (yield self.expand(rest[0], "inside", form.place)) if rest else Constant(None)
        return Definition(name, value)

    def _check_definition(self, name: str, position: Position, place: SourcePlace | None) -> None:
        if position == "inside":
            raise LispSyntaxError(
                "define is only allowed at the top of a program or a body, not inside an expression",
                place=place,
            )
        if position == "body":
            names = self._defined[-1]
            if name not in names:
                names.append(name)
            if len(names) > MAX_NAMES:
                raise LispSyntaxError(f"a body defines at most {MAX_NAMES} names", place=place)

    def _set(self, form: Pair, position: Position) -> Recursive[Node]:
        target, value = arguments_of(form, "(set! name value)", at_least=2, at_most=2)
        name = self._name(target, form.place)
        return Assignment(name, (yield self.expand(value, "inside", form.place)), form.place)

    def _lambda(self, form: Pair, position: Position) -> Recursive[Node]:
        parameters, *body = arguments_of(form, "(lambda (parameter ...) body ...)", at_least=2)
        return (yield from self._procedure("", parameters, body, form.place))

    def _procedure(
        self, name: str, parameters: Datum, body: list[Datum], place: SourcePlace | None
    ) -> Recursive[Lambda]:
        names = []
        while isinstance(parameters, Pair):
            names.append(self._name(parameters.first, place))
            parameters = parameters.rest
        rest = None if parameters is EMPTY else self._name(parameters, place)
        if len({*names, rest}) != len(names) + 1:
            raise LispSyntaxError("two parameters have the same name", place=place)
        if len(names) > MAX_NAMES:
            raise LispSyntaxError(f"a procedure has at most {MAX_NAMES} parameters", place=place)
        if not body:
            raise LispSyntaxError("a procedure needs a body", place=place)
        if self._nested >= MAX_NESTED_SCOPES:
            raise LispSyntaxError(f"procedures and lets nest at most {MAX_NESTED_SCOPES} deep", place=place)
        self._nested += 1
        self._defined.append([])
        node = yield from self._sequence(body, "body", place)
        self._nested -= 1
        defined = tuple(new for new in self._defined.pop() if new not in names and new != rest)
        return Lambda(name, tuple(names), rest, defined, node, place)

    def _define_macro(self, form: Pair, position: Position) -> Recursive[Node]:
        usage = "(define-macro (name parameter ...) body ...)"
        target, *body = arguments_of(form, usage, at_least=2)
        if position != "top" or not isinstance(target, Pair):
            raise LispSyntaxError(
                f"define a macro at the top of a program, and write {usage}", place=form.place
            )
        name = self._name(target.first, form.place, is_macro=True)
        transformer = yield from self._procedure(name, target.rest, body, form.place)
        return Application(Builtin("%define-macro"), (Constant(Symbol(name)), transformer), form.place)

    def _name(self, datum: Datum, place: SourcePlace | None, *, is_macro: bool = False) -> str:
        """A name that may be bound: not a form, and not a macro unless it is redefined as one."""
        if not isinstance(datum, Symbol):
            raise LispSyntaxError(f"expected a name, not {kind_of(datum)}", place=place)
        if datum.name in RESERVED or (datum.name in self._root.macros and not is_macro):
            raise LispSyntaxError(
                f"{datum.name!r} is a form of the language and cannot be a variable", place=place
            )
        return datum.name


def _quote(form: Pair) -> Node:
    (datum,) = arguments_of(form, "(quote datum)", at_least=1, at_most=1)
    return Constant(datum)


def _bindings(form: Pair) -> Node:
    """The names in a body that are not forms; part of the expansion of `memo`."""
    names: set[str] = set()
    pending: list[Datum] = [form.rest]
    seen: set[int] = set()
    while pending:
        datum = pending.pop()
        while isinstance(datum, Pair) and id(datum) not in seen:
            seen.add(id(datum))
            pending.append(datum.first)
            datum = datum.rest
        if isinstance(datum, Symbol) and datum.name not in RESERVED:
            names.add(datum.name)
    return Bindings(tuple(sorted(names)))


def _misplaced(form: Pair) -> Node:
    raise LispSyntaxError(f"{form.first} is only allowed inside another form", place=form.place)


_FLAT: dict[str, Callable[[Pair], Node]] = {
    "quote": _quote,
    "%bindings": _bindings,
    "else": _misplaced,
    "unquote": _misplaced,
    "unquote-splicing": _misplaced,
}
"""Forms without parts to expand."""

_CORE: dict[str, Callable[[_Expander, Pair, Position], Recursive[Node]]] = {
    "if": _Expander._if,
    "or": _Expander._or,
    "begin": _Expander._begin,
    "define": _Expander._define,
    "set!": _Expander._set,
    "lambda": _Expander._lambda,
    "λ": _Expander._lambda,
    "define-macro": _Expander._define_macro,
}

RESERVED = frozenset(_CORE) | frozenset(_FLAT) | frozenset(SUGAR)
"""Names that cannot be variables."""
