"""Between Lisp data and JSON: what goes to the host and what comes back. Depth and size are bounded both ways."""

from holdfast.core import Json
from holdfast.guests.lisp.data import (
    EMPTY,
    Datum,
    Keyword,
    LispOutcome,
    Pair,
    Procedure,
    Symbol,
    kind_of,
    make_list,
)
from holdfast.guests.lisp.errors import LispError
from holdfast.guests.lisp.vm.limits import Meter

MAX_DEPTH = 100
"""Of JSON: deeper than any honest value, far from the host's own limit."""
MAX_PARTS = 250_000
"""Of a value that leaves: items, and blocks of 64 characters."""
_PART_CHARACTERS = 64
_PART_BYTES = 96


def to_json(datum: Datum, *, most: int = MAX_PARTS, names_procedures: bool = False) -> Json:
    """Data as JSON. A procedure is a fault, or its name where that is enough."""
    return _Outward(most, names_procedures).convert(datum, 0)


def from_json(value: Json, meter: Meter) -> Datum:
    """JSON as data, with its memory charged."""
    inward = _Inward()
    datum = inward.convert(value, 0)
    meter.steps += inward.parts // 8
    meter.new_bytes += inward.parts * _PART_BYTES
    return datum


class _Outward:
    def __init__(self, most: int, names_procedures: bool) -> None:
        self._left = most
        self._names_procedures = names_procedures

    def convert(self, datum: Datum, depth: int) -> Json:
        self._left -= 1
        if self._left < 0:
            raise LispError("too-large", "this value is too large to leave the program; hand out less of it")
        if depth > MAX_DEPTH:
            raise LispError("too-deep", f"a value nested more than {MAX_DEPTH} deep cannot leave the program")
        match datum:
            case None | bool() | int() | float():
                return datum
            case str():
                return self._text(datum)
            case Symbol() | Keyword():
                return self._text(datum.name)
            case Pair():
                return self._items(datum, depth)
            case dict():
                return {self._text(key): self.convert(item, depth + 1) for key, item in datum.items()}
            case LispOutcome():
                fields = {key: self.convert(item, depth + 1) for key, item in datum.fields.items()}
                return {"outcome": datum.tag, **fields}
        if datum is EMPTY:
            return []
        if self._names_procedures and isinstance(datum, Procedure):
            return f"#<{kind_of(datum).removeprefix('a ')}>"
        raise LispError("type-error", f"{kind_of(datum)} cannot leave the program")

    def _text(self, text: str) -> str:
        self._left -= len(text) // _PART_CHARACTERS
        return text

    def _items(self, datum: Datum, depth: int) -> Json:
        items: list[Json] = []
        while isinstance(datum, Pair):
            items.append(self.convert(datum.first, depth + 1))
            datum = datum.rest
        if datum is not EMPTY:
            if not self._names_procedures:
                raise LispError("type-error", "a dotted pair cannot leave the program; use a list")
            items.append(self.convert(datum, depth + 1))
        return items


class _Inward:
    def __init__(self) -> None:
        self.parts = 0

    def convert(self, value: Json, depth: int) -> Datum:
        self.parts += 1
        if depth > MAX_DEPTH:
            raise LispError("too-deep", f"an answer nested more than {MAX_DEPTH} deep cannot be taken in")
        match value:
            case str():
                self.parts += len(value) // _PART_CHARACTERS
                return _clean(value)
            case list():
                return make_list([self.convert(item, depth + 1) for item in value])
            case dict():
                return {_clean(str(key)): self.convert(item, depth + 1) for key, item in value.items()}
        return value


def _clean(text: str) -> str:
    """Text without halves of surrogate pairs, which a file name may bring in and no JSON can carry out."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
