"""The information flow of a Lisp program. A pure function of its text, the tools, and the variables of earlier programs.

It is sound and coarser than the flow of Python: a variable has one value, whatever the order of the program, a call that a
procedure of the language makes for the program (`map`, `apply`) counts as unknown, and so does everything that an earlier program defined as a
procedure. Lists are transparent, as in the names of fields; what is put into a table can only be taken out whole.
"""

from collections.abc import Mapping
from typing import NamedTuple

from holdfast.agent.lisp_procedures import (
    CALLS_NOTHING,
    MAKES_KEYWORDS,
    PASSES_ITEMS,
    REMEMBERS,
    SAME,
    SHOWS,
    UNFOLLOWED,
)
from holdfast.core import UNKNOWN, Origin, Origins
from holdfast.guests import lisp_tree as nodes
from holdfast.policy import Flow, Signature, Site, unknown_flow

MAX_PASSES = 25
MAX_STEPS = 20_000
MAX_PATH = 3
MAX_ATOMS = 16
_FUNCTION = Origin(kind="unknown", operation="()")
"""In the variables of a program: a procedure, which a later program cannot be followed into."""


class _Read(NamedTuple):
    operation: str
    path: tuple[str, ...]
    is_open: bool
    """Whether a field of the value is a field of the result."""


class _Procedure(NamedTuple):
    kind: str
    """`lambda`, `builtin` or `tool`."""
    name: str


_WRITTEN = "written"
_KEYWORD = "keyword"
"""A value that may be a keyword, which gives the next argument of a tool its name."""
_ANYTHING = "anything"
"""Data of which nothing is known."""
_STORED = "stored"
"""A value that an earlier program may have stored: of anything, and it may be a procedure."""
_Atom = _Read | _Procedure | str
_Val = frozenset[_Atom]
_NOTHING: _Val = frozenset()


class _Unfollowed(Exception):
    pass


def lisp_flow(code: str, *, tools: Mapping[str, Signature], variables: Mapping[str, Origins]) -> Flow:
    """Analyse a program. `tools` are by the names that it calls them, `variables` are those of earlier programs."""
    if "*" in variables:
        return unknown_flow("an earlier program could not be followed")
    try:
        return _Analysis(nodes.program_tree(code), tools, variables).flow()
    except _Unfollowed as reason:
        return unknown_flow(f"it uses `{reason}`")
    except (nodes.LispError, RecursionError, MemoryError) as error:
        return unknown_flow(f"it cannot be read: {type(error).__name__}")


class _Analysis:
    def __init__(
        self,
        forms: tuple[nodes.Lambda, ...],
        tools: Mapping[str, Signature],
        variables: Mapping[str, Origins],
    ) -> None:
        self._forms = forms
        self._tools = tools
        self._earlier = variables
        self._library = nodes.library_names()
        self._entered: set[str] = set()
        self._names: dict[str, _Val] = {name: _of_earlier(origins) for name, origins in variables.items()}
        self._scope: Mapping[str, str] = {}
        """The variables of the procedures around the current node: a name of its own for each."""
        self._lambdas: dict[str, nodes.Lambda] = {}
        self._scopes: dict[str, Mapping[str, str]] = {}
        self._results: dict[str, _Val] = {}
        self._sites: dict[tuple[int, int], dict[str, dict[str, _Val]]] = {}
        self._defined: set[str] = set()
        self._shown: _Val = _NOTHING
        self._caught = _closed(_all(list(self._names.values())))
        """What an error may carry: the words of tools that fail, what the program raises, and any variable of an earlier one."""
        self._steps = 0
        self._has_changed = True

    def flow(self) -> Flow:
        """Evaluate the program until nothing is added any more."""
        for _ in range(MAX_PASSES):
            self._has_changed = False
            self._entered.clear()
            for form in self._forms:
                self._shown |= self._value(form.body)
            if not self._has_changed:
                return self._result()
        raise _Unfollowed("more than can be followed")

    def _result(self) -> Flow:
        # What decided about a value is not followed: everything that was read may have.
        seen = _all([self._caught, *self._names.values()])
        chosen = frozenset(
            Origin(kind="read", operation=atom.operation, is_chosen=True)
            if isinstance(atom, _Read)
            else Origin(kind="unknown", is_chosen=True)
            for atom in seen
            if isinstance(atom, _Read) or atom in (_ANYTHING, _STORED)
        )
        sites = {
            place: Site(
                operations=frozenset(found),
                arguments={
                    name: _origins(value) | chosen
                    for given in found.values()
                    for name, value in given.items()
                    if name
                },
                rest=frozenset[Origin]().union(
                    *(_origins(given.get("", _NOTHING)) for given in found.values())
                ),
                condition=chosen,
            )
            for place, found in self._sites.items()
            if len(found) == 1  # two tools at one place: neither is known
        }
        names = self._defined | self._earlier.keys()
        variables = {name: _for_later(self._names.get(name, _NOTHING)) for name in names}
        return Flow(sites=sites, shown=_origins(self._shown), variables=variables)

    def _value(self, node: nodes.Node) -> _Val:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise _Unfollowed("more than can be followed")
        match node:
            case nodes.Constant(value=value):
                return (
                    frozenset({_WRITTEN, _KEYWORD}) if nodes.holds_keyword(value) else frozenset({_WRITTEN})
                )
            case nodes.Variable(name=name):
                return self._variable(name)
            case nodes.Builtin(name=name):
                return frozenset({_Procedure("builtin", name)})
            case nodes.Conditional(test=test, then=then, otherwise=otherwise):
                self._value(test)
                return self._value(then) | self._value(otherwise)
            case nodes.Either(first=first, second=second):
                return self._value(first) | self._value(second)
            case nodes.Sequence(items=items):
                values = [self._value(each) for each in items]
                return values[-1]
            case nodes.Definition(name=name, value=value) | nodes.Assignment(name=name, value=value):
                if name not in self._scope:
                    self._defined.add(name)
                self._bind(self._scope.get(name, name), self._value(value))
                return _NOTHING
            case nodes.Lambda():
                return self._lambda(node)
            case nodes.Application():
                return self._application(node)
            case nodes.Bindings(names=names):
                return frozenset[_Atom]().union(*(self._variable(name) for name in names))

    def _variable(self, name: str) -> _Val:
        if name in self._scope:
            return self._names.get(self._scope[name], _NOTHING)
        if any(origin == _FUNCTION for origin in self._earlier.get(name, ())):
            raise _Unfollowed(f"{name}, a procedure of an earlier program")
        found = self._names.get(name, _NOTHING)
        if name in self._tools:
            found |= {_Procedure("tool", name)}
        elif name in self._library:
            found |= {_Procedure("builtin", name)}
        return found

    def _bind(self, name: str, value: _Val) -> None:
        before = self._names.get(name, _NOTHING)
        if not value <= before:
            after = _bounded(before | value)
            self._has_changed = self._has_changed or after != before
            self._names[name] = after

    def _lambda(self, node: nodes.Lambda) -> _Val:
        key = str(id(node))
        if key not in self._lambdas:
            self._lambdas[key] = node
            self._scopes[key] = {**self._scope, **{name: f"{name} {key}" for name in node.names}}
            self._results[key] = _NOTHING
        return frozenset({_Procedure("lambda", key)})

    def _application(self, node: nodes.Application) -> _Val:
        callee = self._value(node.function)
        given = [self._value(each) for each in node.arguments]
        if _STORED in callee:
            raise _Unfollowed("a procedure that is not known")
        found = _NOTHING
        for atom in callee:
            if isinstance(atom, _Procedure):
                match atom.kind:
                    case "lambda":
                        found |= self._enter(atom.name, given)
                    case "tool":
                        found |= self._tool(atom.name, node, given)
                    case _:
                        found |= self._builtin(atom.name, node, given)
        return found

    def _enter(self, key: str, given: list[_Val]) -> _Val:
        """Call a procedure of the program."""
        node = self._lambdas[key]
        scope = self._scopes[key]
        for name, value in zip(node.parameters, given, strict=False):
            self._bind(scope[name], value)
        if node.rest is not None:
            self._bind(scope[node.rest], _all(given[len(node.parameters) :]))
        return self._body(key)

    def _body(self, key: str) -> _Val:
        """The value of a procedure, which each pass evaluates once: the next pass knows more."""
        if key in self._entered:
            return self._results[key]
        self._entered.add(key)
        outer, self._scope = self._scope, self._scopes[key]
        value = self._value(self._lambdas[key].body)
        self._scope = outer
        if not value <= self._results[key]:
            self._results[key] |= value
            self._has_changed = True
        return self._results[key]

    def _tool(self, name: str, node: nodes.Application, given: list[_Val]) -> _Val:
        signature = self._tools[name]
        named = _named_arguments(signature, node.arguments, given)
        if node.place is not None:
            site = self._sites.setdefault((node.place.line, node.place.column), {})
            known = site.setdefault(signature.operation, {})
            for argument, value in named.items():
                if not value <= known.get(argument, _NOTHING):
                    known[argument] = known.get(argument, _NOTHING) | value
                    self._has_changed = True
        return self._read(signature.operation)

    def _read(self, operation: str) -> _Val:
        self._add_caught(frozenset({_Read(operation, (), False)}))
        return frozenset({_Read(operation, (), True)})

    def _add_caught(self, value: _Val) -> None:
        if not value <= self._caught:
            self._caught |= value
            self._has_changed = True

    def _builtin(self, name: str, node: nodes.Application, given: list[_Val]) -> _Val:
        if name in UNFOLLOWED:
            raise _Unfollowed(name)
        whole = _all(given)
        if name in SHOWS:
            self._shown |= whole
        if name == "error":
            self._add_caught(_closed(whole))
        if name == "get" and len(given) >= 2:
            key = node.arguments[1]
            step = nodes.key_name(key.value) if isinstance(key, nodes.Constant) else None
            return _field(given[0], step or "*") | _all(given[2:])
        if name in ("values", "entries"):
            return _field(whole, "*") | (_closed(whole) if name == "entries" else _NOTHING)
        if name == "table":
            return _closed(_all(given[::2]) - {_KEYWORD} | _all(given[1::2]))
        result = whole if name in SAME else _closed(whole)
        called = _NOTHING if name in CALLS_NOTHING else self._call_each(name, whole)
        if name in REMEMBERS:
            result |= {_STORED}
        if name == "call":
            result |= {_ANYTHING}
        if name in MAKES_KEYWORDS:
            result |= {_KEYWORD}
        if name == "%try":
            result |= self._caught
        return result | (called if name in SAME else _closed(called))

    def _call_each(self, caller: str, whole: _Val) -> _Val:
        """What comes back if a procedure of the language calls those that it is given, in any order and with anything."""
        if _STORED in whole:
            raise _Unfollowed("a procedure that is not known")
        found = _NOTHING
        for atom in [each for each in whole if isinstance(each, _Procedure)]:
            match atom.kind:
                case "lambda":
                    node = self._lambdas[atom.name]
                    passed = whole if caller in PASSES_ITEMS else whole | self._results[atom.name]
                    for name in (*node.parameters, *([node.rest] if node.rest is not None else [])):
                        self._bind(self._scopes[atom.name][name], passed)
                    found |= self._body(atom.name)
                case "tool":
                    found |= self._read(self._tools[atom.name].operation)
                case _:
                    if atom.name in UNFOLLOWED:
                        raise _Unfollowed(atom.name)
                    if atom.name in SHOWS:
                        self._shown |= whole
                    if atom.name == "error":
                        self._add_caught(_closed(whole))
                    if atom.name not in CALLS_NOTHING or atom.name in REMEMBERS:
                        raise _Unfollowed(f"{atom.name} as a value")
                    found |= _closed(whole) | {_KEYWORD}
        return found


def _named_arguments(
    signature: Signature, arguments: tuple[nodes.Node, ...], given: list[_Val]
) -> dict[str, _Val]:
    """What each argument of a tool gets; under the empty name, what any of them may get."""
    named: dict[str, _Val] = {}
    positions = list(signature.parameters)
    unlabelled: list[_Val] = []
    index = 0
    while index < len(given):
        node = arguments[index]
        label = nodes.keyword_name(node.value) if isinstance(node, nodes.Constant) else None
        if label is None:
            if _KEYWORD in given[index] or _STORED in given[index]:
                return {"": _all(given)}
            unlabelled.append(given[index])
            index += 1
            continue
        name = label if label in positions else label.replace("-", "_")
        named[name] = named.get(name, _NOTHING) | (given[index + 1] if index + 1 < len(given) else _NOTHING)
        index += 2
    for position, value in zip(positions, unlabelled, strict=False):
        named[position] = named.get(position, _NOTHING) | value
    return named


def _all(values: list[_Val]) -> _Val:
    return _bounded(frozenset[_Atom]().union(*values))


def _closed(value: _Val) -> _Val:
    return frozenset(atom._replace(is_open=False) if isinstance(atom, _Read) else atom for atom in value)


def _field(value: _Val, step: str) -> _Val:
    found: set[_Atom] = set()
    for atom in value:
        if not isinstance(atom, _Read) or not atom.is_open:
            found.add(atom)
        elif len(atom.path) >= MAX_PATH:  # a part of a part is in the part
            found.add(atom._replace(is_open=False))
        else:
            found.add(atom._replace(path=(*atom.path, step)))
    return _bounded(frozenset(found))


def _bounded(value: _Val) -> _Val:
    """The value, or the whole results instead of too many of their fields."""
    if len(value) <= MAX_ATOMS:
        return value
    return frozenset(
        atom._replace(path=(), is_open=False) if isinstance(atom, _Read) else atom for atom in value
    )


def _origins(value: _Val) -> Origins:
    found: set[Origin] = set()
    for atom in value:
        if isinstance(atom, _Read):
            found.add(Origin(kind="read", operation=atom.operation, path=atom.path))
        elif atom in (_ANYTHING, _STORED):
            found.add(UNKNOWN)
        elif atom in (_WRITTEN, _KEYWORD):
            found.add(Origin(kind="written"))
    return frozenset(found)


def _for_later(value: _Val) -> Origins:
    has_procedure = any(isinstance(atom, _Procedure) or atom == _STORED for atom in value)
    return _origins(value) | ({_FUNCTION} if has_procedure else frozenset())


def _of_earlier(origins: Origins) -> _Val:
    """The variable of an earlier program. What was read there is closed, because it may be in a table; it may be a keyword."""
    found: set[_Atom] = {_KEYWORD}
    for origin in origins:
        match origin.kind:
            case "read":
                found.add(_Read(origin.operation, origin.path, False))
            case "written":
                found.add(_WRITTEN)
            case _:
                found.add(_ANYTHING)
    return frozenset(found)
