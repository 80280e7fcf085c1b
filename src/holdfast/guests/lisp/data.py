"""What Lisp programs are made of. Data never changes once made, so it has no cycles and may be shared at will.

| Lisp | here |
|---|---|
| `nil` (JSON null) | `None` |
| `#t` `#f`, numbers, strings | `bool`, `int`, `float`, `str` |
| symbol, `:keyword` | `Symbol`, `Keyword` |
| list | `Pair` and `EMPTY` |
| table (JSON object) | `dict` with string keys |
| outcome | `LispOutcome` |
| procedure | `Closure`, `Primitive`, `Control`, `Operation` |

Python lists are never data: a frame is one, with its parent first and its variables after it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, final

from holdfast.guests.lisp.faults import Fault

if TYPE_CHECKING:
    from holdfast.guests.lisp.environment import Template
    from holdfast.guests.lisp.machine import Machine

Datum = object
"""Any value of a Lisp program; what it is, is asked with isinstance."""

Frame = list[Any]
"""The variables of one call: its parent frame (or None), then its variables. Any: the machine's hot path."""


class Place(NamedTuple):
    """Where something stands in the source, counted from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


@final
class Symbol:
    """A name. Symbols are equal when their names are; they are not interned, so a guest cannot fill a table of ours."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return type(other) is Symbol and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return self.name


@final
class Keyword:
    """A name that stands for itself, written `:name`; it labels an argument."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return type(other) is Keyword and other.name == self.name

    def __hash__(self) -> int:
        return hash((":", self.name))

    def __repr__(self) -> str:
        return f":{self.name}"


@final
class Empty:
    """The empty list."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "()"


@final
class Unbound:
    """What a variable holds before it is defined."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "#<unbound>"


EMPTY = Empty()
UNBOUND = Unbound()


@final
class Pair:
    """A list that is not empty. `place` is known where it was read from source."""

    __slots__ = ("first", "place", "rest")

    def __init__(self, first: Datum, rest: Datum, place: Place | None = None) -> None:
        self.first = first
        self.rest = rest
        self.place = place


@final
class LispOutcome:
    """How something ended, as a value: a tag of `holdfast.core.outcomes` and its fields."""

    __slots__ = ("fields", "tag")

    def __init__(self, tag: str, fields: Mapping[str, Datum]) -> None:
        self.tag = tag
        self.fields = dict(fields)


@final
class Closure:
    """A procedure written in Lisp, with the frame it was made in."""

    __slots__ = ("frame", "template")

    def __init__(self, template: "Template", frame: Frame | None) -> None:
        self.template = template
        self.frame = frame


@final
class Primitive:
    """A procedure written in Python that is pure and takes a constant time. `most` None is any number."""

    __slots__ = ("function", "least", "most", "name")

    def __init__(self, name: str, function: Callable[..., Datum], least: int, most: int | None) -> None:
        self.name, self.function, self.least, self.most = name, function, least, most


@final
class Control:
    """A procedure written in Python that is handed the machine: it takes time, moves the control, or asks the host."""

    __slots__ = ("function", "least", "most", "name")

    def __init__(
        self, name: str, function: "Callable[[Machine, list[Datum]], None]", least: int, most: int | None
    ) -> None:
        self.name, self.function, self.least, self.most = name, function, least, most


@final
class Operation:
    """A procedure that is carried out by the host: a call through the gate. `positions` name unlabelled arguments."""

    __slots__ = ("name", "operation", "positions")

    def __init__(self, name: str, operation: str, positions: tuple[str, ...]) -> None:
        self.name, self.operation, self.positions = name, operation, positions


PROCEDURES = (Closure, Primitive, Control, Operation)


def is_true(datum: Datum) -> bool:
    """Everything is true but `#f` and `nil`."""
    return datum is not False and datum is not None


def make_list(items: Iterable[Datum], tail: Datum = EMPTY) -> Datum:
    """A list of the items, ending in `tail`."""
    result = tail
    for item in reversed(list(items)):
        result = Pair(item, result)
    return result


def iterate(datum: Datum) -> Iterator[Datum]:
    """The items of a list. Raises a fault where it is none."""
    while type(datum) is Pair:
        yield datum.first
        datum = datum.rest
    if datum is not EMPTY:
        raise Fault("type-error", f"expected a list, it ends in {kind_of(datum)}")


def kind_of(datum: Datum) -> str:
    """What a value is, in words for a message; never its content."""
    if isinstance(datum, bool):
        return "a boolean"
    for types, words in _KINDS:
        if isinstance(datum, types):
            return words
    return "nil" if datum is None else "an unknown thing"


_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    ((int, float), "a number"),
    (str, "a string"),
    (Symbol, "a symbol"),
    (Keyword, "a keyword"),
    ((Pair, Empty), "a list"),
    (dict, "a table"),
    (LispOutcome, "an outcome"),
    (PROCEDURES, "a procedure"),
)
