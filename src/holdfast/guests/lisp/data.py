"""What Lisp programs are made of. Data never changes once made, so it has no cycles and may be shared at will.

| Lisp | here |
|---|---|
| `nil` (JSON null) | `None` |
| `#t` `#f`, numbers, strings | `bool`, `int`, `float`, `str` |
| symbol, `:keyword` | `Symbol`, `Keyword` |
| list | `Pair` and `EMPTY` |
| table (JSON object) | `dict` with string keys |
| outcome | `LispOutcome` |
| procedure | a `Procedure`: `Primitive` and `Operation` here, `Closure` in `environment`, `Control` in `registers` |

Python lists are never data: a frame is one, with its parent first and its variables after it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, final

from holdfast.core import pluralize
from holdfast.guests.lisp.errors import LispError, Place

Datum = object
"""Any value of a Lisp program; what it is, is asked with isinstance."""

Frame = list[Any]
"""The variables of one call: its parent frame (or None), then its variables. Any: the machine's hot path."""


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


class Procedure:
    """Whatever can be called."""

    __slots__ = ()


class HostProcedure(Procedure):
    """A procedure written in Python, and how many arguments it takes; `most` None is any number."""

    __slots__ = ("least", "most", "name")

    def __init__(self, name: str, least: int, most: int | None) -> None:
        self.name, self.least, self.most = name, least, most

    def fits(self, count: int) -> bool:
        """Whether it takes so many arguments."""
        return self.least <= count and (self.most is None or count <= self.most)

    def check(self, count: int) -> None:
        """Raise a fault where it does not."""
        if self.fits(count):
            return
        if self.most is None:
            expected = f"at least {pluralize(self.least, 'argument')}"
        elif self.most == self.least:
            expected = pluralize(self.least, "argument")
        else:
            expected = f"{self.least} to {self.most} arguments"
        name = self.name.lstrip("%")
        raise LispError("arity-error", f"{name} takes {expected}, it was given {count}")


@final
class Primitive(HostProcedure):
    """A procedure written in Python that is pure and takes a constant time."""

    __slots__ = ("function",)

    def __init__(self, name: str, function: Callable[..., Datum], least: int, most: int | None) -> None:
        super().__init__(name, least, most)
        self.function = function


@final
class Operation(Procedure):
    """A procedure that is carried out by the host: a call through the gate. `positions` name unlabelled arguments."""

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
    """The items of a list. Raises a fault where it is none."""
    while type(datum) is Pair:
        yield datum.first
        datum = datum.rest
    if datum is not EMPTY:
        raise LispError("type-error", f"expected a list, it ends in {kind_of(datum)}")


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
    (Procedure, "a procedure"),
)
