"""Syntax tree nodes: a program after expansion, without sugar and macros. A tree is always well formed."""

from dataclasses import dataclass
from typing import TypeAlias

from holdfast.guests.lisp.data import Datum
from holdfast.guests.lisp.errors import SourcePlace


@dataclass(slots=True, frozen=True)
class Constant:
    """A literal or quoted value."""

    value: Datum


@dataclass(slots=True, frozen=True)
class Variable:
    """The value of a variable."""

    name: str
    place: SourcePlace | None


@dataclass(slots=True, frozen=True)
class Builtin:
    """A procedure of the language, even if the program has redefined its name."""

    name: str


@dataclass(slots=True, frozen=True)
class Conditional:
    """`if`: one of two nodes, depending on a test."""

    test: "Node"
    then: "Node"
    otherwise: "Node"


@dataclass(slots=True, frozen=True)
class Either:
    """`or`: the first value if it is true, else the second."""

    first: "Node"
    second: "Node"


@dataclass(slots=True, frozen=True)
class Sequence:
    """`begin`: nodes in order; the value is that of the last."""

    items: tuple["Node", ...]


@dataclass(slots=True, frozen=True)
class Definition:
    """`define`: binds a name in the innermost body or at the top level."""

    name: str
    value: "Node"


@dataclass(slots=True, frozen=True)
class Assignment:
    """`set!`: changes the value of an existing variable."""

    name: str
    value: "Node"
    place: SourcePlace | None


@dataclass(slots=True, frozen=True)
class Lambda:
    """A procedure. `defined` are the names that its body defines."""

    name: str
    parameters: tuple[str, ...]
    rest: str | None
    defined: tuple[str, ...]
    body: "Node"
    place: SourcePlace | None

    @property
    def names(self) -> tuple[str, ...]:
        """All variables of its frame, in order."""
        return self.parameters + ((self.rest,) if self.rest is not None else ()) + self.defined


@dataclass(slots=True, frozen=True)
class Application:
    """A call: a procedure applied to arguments."""

    function: "Node"
    arguments: tuple["Node", ...]
    place: SourcePlace | None


@dataclass(slots=True, frozen=True)
class Bindings:
    """A table of the names that are bound here, for the key of a memo."""

    names: tuple[str, ...]


Node: TypeAlias = (
    Constant
    | Variable
    | Builtin
    | Conditional
    | Either
    | Sequence
    | Definition
    | Assignment
    | Lambda
    | Application
    | Bindings
)
