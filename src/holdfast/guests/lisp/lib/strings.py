"""Strings and symbols. The time and memory for a string are charged before it is created."""

import math
import sys
from collections.abc import Callable
from typing import Any

from holdfast.core import text_bytes
from holdfast.guests.lisp.data import Datum, Keyword, Primitive, Symbol, kind_of, make_list
from holdfast.guests.lisp.errors import LispError, LispSyntaxError
from holdfast.guests.lisp.lang.printer import show
from holdfast.guests.lisp.lang.reader import MAX_NAME_CHARACTERS, read
from holdfast.guests.lisp.lib.lists import PAIR_BYTES, list_items
from holdfast.guests.lisp.lib.numbers import integer, number
from holdfast.guests.lisp.long_text import SAVED_BYTES, LongText, as_text, as_utf8
from holdfast.guests.lisp.vm.limits import LONG_TEXT_CHARACTERS
from holdfast.guests.lisp.vm.registers import Control, Registers

MAX_CHARACTERS = 64 << 20
"""Characters of one string; the memory limit of the run is usually reached first."""
MAX_SHOWN_CHARACTERS = 4 << 20
"""Characters of data that are converted to text."""
_CHARACTERS_PER_STEP = 64


def text(datum: Datum) -> str:
    """The datum, if it is a string that a procedure can work on. Raises a LispError otherwise."""
    if type(datum) is str:
        return datum
    if type(datum) is LongText:
        raise LispError(
            "too-large",
            f"a string of {len(datum):,} characters, some of them wide, is too large; use parts of it",
        )
    raise LispError("type-error", f"expected a string, not {kind_of(datum)}")


def _string(datum: Datum) -> str | LongText:
    """The datum, if it is a string, of any length. Raises a LispError otherwise."""
    return datum if type(datum) is LongText else text(datum)


def charge_text(machine: Registers, characters: int, *sources: str) -> None:
    """Charge for a string before it is created. Its characters are as wide as those of the sources, if they are known."""
    if characters > MAX_CHARACTERS:
        raise LispError("too-large", f"a string has at most {MAX_CHARACTERS} characters")
    steps = characters // _CHARACTERS_PER_STEP
    if characters <= LONG_TEXT_CHARACTERS:
        machine.charge(steps=steps, size=4 * characters)
    else:
        machine.charge(steps=steps, text=max(map(_width, sources), default=4) * characters)


def _charge_utf8(machine: Registers, size: int) -> None:
    """Charge for a long text before it is created."""
    if size > MAX_CHARACTERS:
        raise LispError("too-large", f"a string has at most {MAX_CHARACTERS} bytes of UTF-8")
    machine.charge(steps=size // _CHARACTERS_PER_STEP, text=size)


def _in_utf8(characters: int, *sources: str | LongText) -> list[bytes] | None:
    """The sources as UTF-8, if a string of so many of their characters could take much more memory as it is; None otherwise."""
    texts = [source for source in sources if isinstance(source, str)]
    if len(texts) == len(sources):
        if characters <= LONG_TEXT_CHARACTERS:
            return None
        memory = max(map(_width, texts), default=1) * characters
        if memory - characters <= SAVED_BYTES:
            return None
        size = text_bytes(list(texts)) * characters // sum(map(len, texts))
        if memory - size <= SAVED_BYTES:
            return None
    return [as_utf8(source) for source in sources]


def _width(source: str) -> int:
    """The bytes that each character of a string takes in memory."""
    if source.isascii():
        return 1
    if len(source) > LONG_TEXT_CHARACTERS:
        return sys.getsizeof(source) // len(source)
    widest = max(source)
    return 1 if widest <= "\u00ff" else 2 if widest <= "\uffff" else 4


def _length(datum: Datum) -> int:
    return len(_string(datum))


def _append(machine: Registers, arguments: list[Datum]) -> None:
    _return_joined(machine, "", [_string(part) for part in arguments])


def _return_joined(machine: Registers, separator: str, parts: list[str | LongText]) -> None:
    count = sum(map(len, parts)) + len(separator) * len(parts)
    if (pieces := _in_utf8(count, separator, *parts)) is not None:
        _charge_utf8(machine, sum(map(len, pieces)) + len(pieces[0]) * len(parts))
        machine.return_value(as_text(pieces[0].join(pieces[1:])))
        return
    texts = [part for part in parts if isinstance(part, str)]
    charge_text(machine, count, separator, *texts)
    machine.return_value(separator.join(texts))


def _concatenate(machine: Registers, arguments: list[Datum]) -> None:
    """Concatenate the arguments as displayed text."""
    machine.return_value(display_text(machine, arguments, separator=""))


def display_text(machine: Registers, arguments: list[Datum], *, separator: str) -> str:
    """The arguments as text for a person."""
    parts: list[str] = []
    length = 0
    for argument in arguments:
        parts.append(show(argument, max_characters=MAX_SHOWN_CHARACTERS - length, is_readable=False))
        length += len(parts[-1])
        charge_text(machine, length)
    return separator.join(parts)


def _write(machine: Registers, arguments: list[Datum]) -> None:
    """A datum as text that can be read back."""
    result = show(arguments[0], max_characters=MAX_SHOWN_CHARACTERS)
    charge_text(machine, len(result))
    machine.return_value(result)


def _read(machine: Registers, arguments: list[Datum]) -> None:
    """The first datum in a text."""
    source = text(arguments[0])
    machine.charge(steps=len(source), size=PAIR_BYTES * len(source))
    try:
        data = read(source)
    except LispSyntaxError as error:
        raise LispError(error.code, f"the text cannot be read ({error.place}): {error.message}") from None
    machine.return_value(data[0] if data else None)


def _slice(machine: Registers, arguments: list[Datum]) -> None:
    source = _string(arguments[0])
    start = integer(arguments[1])
    end = integer(arguments[2]) if len(arguments) == 3 else len(source)
    if not 0 <= start <= end <= len(source):
        raise LispError(
            "index-error", f"there is no part from {start} to {end} in a string of {len(source)} characters"
        )
    if isinstance(source, LongText):
        first, last = source.offset(start), source.offset(end)
        _charge_utf8(machine, last - first)
        machine.return_value(as_text(source.content[first:last]))
        return
    charge_text(machine, end - start, source)
    machine.return_value(source[start:end])


def _split(machine: Registers, arguments: list[Datum]) -> None:
    source = _string(arguments[0]) if len(arguments) == 2 else text(arguments[0])
    separator = text(arguments[1]) if len(arguments) == 2 else None
    if separator == "":
        raise LispError("type-error", "the separator of a split must not be empty")
    if isinstance(source, LongText):
        content, mark = source.content, (separator or " ").encode()
        _charge_utf8(machine, len(content))
        _charge_pieces(machine, content.count(mark) + 1)
        machine.return_value(make_list(map(as_text, content.split(mark))))
        return
    charge_text(machine, len(source), source)
    _charge_pieces(machine, source.count(separator) + 1 if separator else len(source) // 2 + 1)
    machine.return_value(make_list(source.split(separator)))


def _charge_pieces(machine: Registers, pieces: int) -> None:
    machine.charge(steps=pieces // 8, size=(PAIR_BYTES + 56) * pieces)


def _join(machine: Registers, arguments: list[Datum]) -> None:
    parts = [_string(part) for part in list_items(machine, arguments[0])]
    _return_joined(machine, text(arguments[1]) if len(arguments) == 2 else "", parts)


def _repeat(machine: Registers, arguments: list[Datum]) -> None:
    source, count = _string(arguments[0]), max(0, integer(arguments[1]))
    if (pieces := _in_utf8(len(source) * count, source)) is not None:
        _charge_utf8(machine, len(pieces[0]) * count)
        machine.return_value(as_text(pieces[0] * count))
        return
    source = text(source)
    charge_text(machine, len(source) * count, source)
    machine.return_value(source * count)


def _replace(machine: Registers, arguments: list[Datum]) -> None:
    source, old, new = map(_string, arguments)
    if len(old) == 0:
        raise LispError("type-error", "the text to replace must not be empty")
    if isinstance(source, str) and isinstance(old, str) and isinstance(new, str):
        count = len(source) + source.count(old) * max(0, len(new) - len(old))
        if (pieces := _in_utf8(count, source, new)) is None:
            charge_text(machine, count, source, new)
            machine.return_value(source.replace(old, new))
            return
        content, added = pieces
    else:
        content, added = as_utf8(source), as_utf8(new)
    removed = as_utf8(old)
    _charge_utf8(machine, len(content) + content.count(removed) * max(0, len(added) - len(removed)))
    machine.return_value(as_text(content.replace(removed, added)))


def _string_function(name: str, function: Callable[[str], str]) -> Control:
    def run(machine: Registers, arguments: list[Datum]) -> None:
        source = text(arguments[0])
        if source.isascii():
            charge_text(machine, len(source), source)
        else:
            charge_text(machine, 3 * len(source))  # some characters become three
        machine.return_value(function(source))

    return Control(name, run, 1, 1)


def _string_comparison(name: str, function: Callable[[Any, Any], Datum]) -> Control:
    """A comparison that has the same result for the UTF-8 of two strings."""

    def run(machine: Registers, arguments: list[Datum]) -> None:
        one, other = map(_string, arguments)
        machine.charge(steps=(len(one) + len(other)) // _CHARACTERS_PER_STEP)
        if isinstance(one, str) and isinstance(other, str):
            machine.return_value(function(one, other))
        else:
            machine.return_value(function(as_utf8(one), as_utf8(other)))

    return Control(name, run, 2, 2)


def _index(machine: Registers, arguments: list[Datum]) -> None:
    source, part = map(_string, arguments)
    machine.charge(steps=(len(source) + len(part)) // _CHARACTERS_PER_STEP)
    if isinstance(source, LongText):
        found = source.content.find(as_utf8(part))
        found = source.index(found) if found > 0 else found
    else:
        found = source.find(part) if isinstance(part, str) else -1  # a long text is in no shorter one
    machine.return_value(None if found < 0 else found)


def _parse_number(datum: Datum) -> Datum:
    """Parse a number; #f if the text is not one."""
    source = text(datum)
    try:
        data = read(source) if len(source) < 2000 else []
    except LispSyntaxError:
        return False
    if len(data) != 1 or isinstance(data[0], bool) or not isinstance(data[0], (int, float)):
        return False
    return data[0]


def _number_text(datum: Datum) -> str:
    value = number(datum)
    return repr(value) if math.isfinite(value) else ""


def _name(datum: Datum) -> str:
    if isinstance(datum, (Symbol, Keyword)):
        return datum.name
    raise LispError("type-error", f"expected a symbol, not {kind_of(datum)}")


def _symbol(datum: Datum) -> Symbol:
    name = text(datum)
    if len(name) > MAX_NAME_CHARACTERS:
        raise LispError("too-large", f"a name has at most {MAX_NAME_CHARACTERS} characters")
    return Symbol(name)


STRINGS = (
    Primitive("string-length", _length, 1, 1),
    Primitive("string->number", _parse_number, 1, 1),
    Primitive("number->string", _number_text, 1, 1),
    Primitive("symbol->string", _name, 1, 1),
    Primitive("string->symbol", _symbol, 1, 1),
    Control("string-append", _append, 0, None),
    Control("str", _concatenate, 0, None),
    Control("write-string", _write, 1, 1),
    Control("read-string", _read, 1, 1),
    Control("substring", _slice, 2, 3),
    Control("string-split", _split, 1, 2),
    Control("string-join", _join, 1, 2),
    Control("string-repeat", _repeat, 2, 2),
    Control("string-replace", _replace, 3, 3),
    _string_function("string-upcase", str.upper),
    _string_function("string-downcase", str.lower),
    _string_function("string-trim", str.strip),
    _string_comparison("string-contains?", lambda source, part: part in source),
    Control("string-index", _index, 2, 2),
    _string_comparison("string-prefix?", lambda prefix, source: source.startswith(prefix)),
    _string_comparison("string-suffix?", lambda suffix, source: source.endswith(suffix)),
    _string_comparison("string=?", lambda one, other: one == other),
    _string_comparison("string<?", lambda one, other: one < other),
)
