"""Conversion between Lisp data and JSON, with limits on depth and size in both directions."""

import binascii
import sys

from holdfast.core import Json, text_bytes
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
from holdfast.guests.lisp.long_text import SAVED_BYTES, LongText, as_text
from holdfast.guests.lisp.vm.limits import LONG_TEXT_CHARACTERS, Meter

MAX_DEPTH = 100
"""Nesting of JSON: deeper than any reasonable value, and far below Python's recursion limit."""
MAX_PARTS = 250_000
"""Size of a value that leaves the program: items, plus blocks of 64 characters of short texts."""
MAX_TEXT_CHARACTERS = 256 << 20
"""Long texts in a value that leaves the program: a file of the largest size that `world.read` returns fits, also in base64."""
_PART_CHARACTERS = 64
_PART_BYTES = 96


def to_json(datum: Datum, *, max_parts: int = MAX_PARTS, names_procedures: bool = False) -> Json:
    """Convert data to JSON. A procedure is an error, or becomes its name if `names_procedures` is set."""
    return _ToJson(max_parts, names_procedures).convert(datum, 0)


def from_json(value: Json, meter: Meter, *, is_base64: bool = False) -> Datum:
    """Convert JSON, or the base64 of a text, to data, and charge its memory."""
    converter = _FromJson()
    datum = converter.decode(str(value)) if is_base64 else converter.convert(value, 0)
    meter.steps += converter.parts // 8 + converter.text_bytes // (8 * _PART_CHARACTERS)
    meter.new_bytes += converter.parts * _PART_BYTES
    meter.new_text_bytes += converter.text_bytes
    return datum


class _ToJson:
    def __init__(self, max_parts: int, names_procedures: bool) -> None:
        self._left = max_parts
        self._text_left = MAX_TEXT_CHARACTERS
        self._names_procedures = names_procedures

    def convert(self, datum: Datum, depth: int) -> Json:
        self._left -= 1
        if self._left < 0:
            raise LispError("too-large", "this value is too large to leave the program; return less of it")
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
        if isinstance(datum, LongText):
            described = f"a string of {len(datum):,} characters"
            if self._names_procedures:
                return f"#<{described}>"
            raise LispError("too-large", f"{described}, some of them wide, can only be written to a file")
        if self._names_procedures and isinstance(datum, Procedure):
            return f"#<{kind_of(datum).removeprefix('a ')}>"
        raise LispError("type-error", f"{kind_of(datum)} cannot leave the program")

    def _text(self, text: str) -> str:
        if len(text) <= LONG_TEXT_CHARACTERS:
            self._left -= len(text) // _PART_CHARACTERS
            return text
        self._text_left -= len(text)
        if self._text_left < 0:
            raise LispError(
                "too-large", f"a value that leaves the program has at most {MAX_TEXT_CHARACTERS} characters"
            )
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


class _FromJson:
    def __init__(self) -> None:
        self.parts = 0
        self.text_bytes = 0

    def convert(self, value: Json, depth: int) -> Datum:
        self.parts += 1
        if depth > MAX_DEPTH:
            raise LispError(
                "too-deep", f"a result nested more than {MAX_DEPTH} deep cannot enter the program"
            )
        match value:
            case str():
                text = _clean(value)
                if len(text) <= LONG_TEXT_CHARACTERS:
                    self.parts += len(text) // _PART_CHARACTERS
                    return text
                if sys.getsizeof(text) - text_bytes(text) > SAVED_BYTES:
                    return self._long(text.encode())
                self.text_bytes += sys.getsizeof(text)
                return text
            case list():
                return make_list([self.convert(item, depth + 1) for item in value])
            case dict():
                return {_clean(str(key)): self.convert(item, depth + 1) for key, item in value.items()}
        return value

    def decode(self, value: str) -> Datum:
        """The text that a value is the base64 of."""
        try:
            return self._long(binascii.a2b_base64(value))
        except ValueError:
            raise LispError(
                "type-error", "the file is not UTF-8 text: it changed while it was read; read it again"
            ) from None

    def _long(self, content: bytes) -> Datum:
        self.text_bytes += len(content)
        return as_text(content)


def _clean(text: str) -> str:
    """Replace lone surrogates: a file name may contain them, and JSON cannot."""
    try:
        if not text.isascii():
            text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text  # not a copy of it, which can take 200 MB
