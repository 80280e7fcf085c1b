"""The core of the language: what is left of a program when sugar and macros are gone, and all of it is well formed."""

from dataclasses import dataclass
from typing import TypeAlias

from holdfast.guests.lisp.data import Datum
from holdfast.guests.lisp.errors import Place


@dataclass(slots=True, frozen=True)
class Constant:
    """A value that stands for itself."""

    value: Datum


@dataclass(slots=True, frozen=True)
class Variable:
    """The value of a name."""

    name: str
    place: Place | None


@dataclass(slots=True, frozen=True)
class Builtin:
    """A procedure of the language itself, whatever the program has made of its name."""

    name: str


@dataclass(slots=True, frozen=True)
class Conditional:
    """One of two, by a test."""

    test: "Node"
    then: "Node"
    otherwise: "Node"


@dataclass(slots=True, frozen=True)
class Either:
    """The first if it is true, else the second."""

    first: "Node"
    second: "Node"


@dataclass(slots=True, frozen=True)
class Sequence:
    """One after the other; the value of the last."""

    items: tuple["Node", ...]


@dataclass(slots=True, frozen=True)
class Definition:
    """Gives a name its value, in the innermost body or at the top."""

    name: str
    value: "Node"


@dataclass(slots=True, frozen=True)
class Assignment:
    """Gives a name that exists another value."""

    name: str
    value: "Node"
    place: Place | None


@dataclass(slots=True, frozen=True)
class Lambda:
    """A procedure. `defined` are the names that its body defines."""

    name: str
    parameters: tuple[str, ...]
    rest: str | None
    defined: tuple[str, ...]
    body: "Node"
    place: Place | None

    @property
    def names(self) -> tuple[str, ...]:
        """All variables of its frame, in order."""
        return self.parameters + ((self.rest,) if self.rest is not None else ()) + self.defined


@dataclass(slots=True, frozen=True)
class Call:
    """A procedure applied to arguments."""

    function: "Node"
    arguments: tuple["Node", ...]
    place: Place | None


@dataclass(slots=True, frozen=True)
class Bindings:
    """A table of those of these names that are bound here, for the key of a memo."""

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
    | Call
    | Bindings
)
