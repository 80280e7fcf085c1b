"""The data types of Lisp programs. Data is immutable, so it has no cycles and can be shared freely.

| Lisp | Python |
|---|---|
| `nil` (JSON null) | `None` |
| `#t` `#f`, numbers, strings | `bool`, `int`, `float`, `str` (or `LongText`) |
| symbol, `:keyword` | `Symbol`, `Keyword` |
| list | `Pair` and `EMPTY` |
| table (JSON object) | `dict` with string keys |
| outcome | `LispOutcome` |
| procedure | a `Procedure`: `Primitive` and `Operation` here, `Closure` in `environment`, `Control` in `registers` |

A Python list is never data: it is a frame, with its parent first and its variables after it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, final

from holdfast.core import pluralize
from holdfast.guests.lisp.errors import LispError, SourcePlace
from holdfast.guests.lisp.long_text import LongText

Datum = object
"""Any value of a Lisp program; use isinstance to find out which."""

Frame = list[Any]
"""The variables of one call: its parent frame (or None), then its variables. Any: the machine's hot path."""


@final
class Symbol:
    """A name. Symbols with equal names are equal. They are not interned, so a guest cannot fill a global table."""

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
    """A name that evaluates to itself, written `:name`; it labels an argument."""

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
    """The value of a variable before its definition."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "#<unbound>"


EMPTY = Empty()
UNBOUND = Unbound()


@final
class Pair:
    """A non-empty list. `place` is set if it was read from source."""

    __slots__ = ("first", "place", "rest")

    def __init__(self, first: Datum, rest: Datum, place: SourcePlace | None = None) -> None:
        self.first = first
        self.rest = rest
        self.place = place


@final
class LispOutcome:
    """An outcome as a value: a tag of `holdfast.core.outcomes` and its fields."""

    __slots__ = ("fields", "tag")

    def __init__(self, tag: str, fields: Mapping[str, Datum]) -> None:
        self.tag = tag
        self.fields = dict(fields)


class Procedure:
    """Base class of everything that can be called."""

    __slots__ = ()


class HostProcedure(Procedure):
    """A procedure written in Python. If `max_arguments` is None, it takes any number."""

    __slots__ = ("max_arguments", "min_arguments", "name")

    def __init__(self, name: str, min_arguments: int, max_arguments: int | None) -> None:
        self.name, self.min_arguments, self.max_arguments = name, min_arguments, max_arguments

    def accepts(self, count: int) -> bool:
        """Whether it takes this number of arguments."""
        return self.min_arguments <= count and (self.max_arguments is None or count <= self.max_arguments)

    def check(self, count: int) -> None:
        """Raise a LispError if it does not take this number of arguments."""
        if self.accepts(count):
            return
        if self.max_arguments is None:
            expected = f"at least {pluralize(self.min_arguments, 'argument')}"
        elif self.max_arguments == self.min_arguments:
            expected = pluralize(self.min_arguments, "argument")
        else:
            expected = f"{self.min_arguments} to {self.max_arguments} arguments"
        name = self.name.lstrip("%")
        raise LispError("arity-error", f"{name} takes {expected}, but got {count}")


@final
class Primitive(HostProcedure):
    """A procedure written in Python that is pure and takes constant time."""

    __slots__ = ("function",)

    def __init__(
        self, name: str, function: Callable[..., Datum], min_arguments: int, max_arguments: int | None
    ) -> None:
        super().__init__(name, min_arguments, max_arguments)
        self.function = function


@final
class Operation(Procedure):
    """A procedure that the host executes: a call through the gate. `positions` are the names of unlabelled arguments."""

    __slots__ = ("name", "operation", "positions")

    def __init__(self, name: str, operation: str, positions: tuple[str, ...]) -> None:
        self.name, self.operation, self.positions = name, operation, positions


def make_list(items: Iterable[Datum], tail: Datum = EMPTY) -> Datum:
    """A list of the items, ending in `tail`."""
    result = tail
    for item in reversed(list(items)):
        result = Pair(item, result)
    return result


def iterate(datum: Datum) -> Iterator[Datum]:
    """The items of a list. Raises a LispError if it is not a proper list."""
    while type(datum) is Pair:
        yield datum.first
        datum = datum.rest
    if datum is not EMPTY:
        raise LispError("type-error", f"expected a list, but it ends in {kind_of(datum)}")


def kind_of(datum: Datum) -> str:
    """The kind of a value, for a message; never its content."""
    if isinstance(datum, bool):
        return "a boolean"
    for types, name in _KINDS:
        if isinstance(datum, types):
            return name
    return "nil" if datum is None else "an unknown value"


_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    ((int, float), "a number"),
    ((str, LongText), "a string"),
    (Symbol, "a symbol"),
    (Keyword, "a keyword"),
    ((Pair, Empty), "a list"),
    (dict, "a table"),
    (LispOutcome, "an outcome"),
    (Procedure, "a procedure"),
)
