"""A TOML text as a person wrote it: where a value stands in it, and the same text with one value changed.

The standard library reads TOML and forgets where things stood. Comments and order are the person's and stay.
"""

import re
import tomllib
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from holdfast.core.errors import InvalidConfig, InvalidInput

Scalar = str | int | float | bool
_TABLE = re.compile(r"\s*\[([A-Za-z0-9_.\s-]+)\]\s*(?:#.*)?")
_PAIR = re.compile(r"\s*([A-Za-z0-9_.\s-]+?)\s*=\s*")
_SYNTAX = re.compile(r"(?P<what>.*) \(at line (?P<line>\d+), column (?P<column>\d+)\)")


class Place(NamedTuple):
    """Where something stands; both count from 1."""

    line: int
    column: int


class _Pair(NamedTuple):
    key: str
    place: Place


def parse(text: str, source: str) -> dict[str, object]:
    """The table that a text holds. Raises InvalidConfig, with line and column."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = _SYNTAX.fullmatch(str(error))
        last = text.rstrip().splitlines() or [""]
        line, column = (found["line"], found["column"]) if found else (len(last), len(last[-1]) + 1)
        what = found["what"] if found else str(error)
        raise InvalidConfig(
            f"{source}:{line}:{column}: {what}", hint="fix the line, or move the file away"
        ) from error


def place_of(text: str, key: str) -> Place | None:
    """Where the value of a dotted key stands, or the table or the inline table that holds it."""
    pairs = {pair.key: pair.place for pair in _pairs(text)}
    while key:
        if key in pairs:
            return pairs[key]
        key = key.rpartition(".")[0]
    return None


def with_value(text: str, key: str, value: Scalar) -> str:
    """The same text in which a dotted key has this value; comments stay. Raises InvalidInput where it cannot be done."""
    lines = text.splitlines()
    table, _, name = key.rpartition(".")
    written = f"{name} = {_written(value)}"
    pairs = {pair.key: pair.place.line for pair in _pairs(text)}
    if key in pairs:
        lines[pairs[key] - 1] = written
    else:
        lines.insert(_room_for(lines, table, name), written)
        if table and table not in pairs:
            lines[-1:] = ["", f"[{table}]", written]
    changed = "\n".join(lines) + "\n"
    _check_only_this_changed(text, changed, key, value)
    return changed


def _pairs(text: str) -> Iterator[_Pair]:
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if heading := _TABLE.fullmatch(line):
            table = heading[1].strip()
            yield _Pair(table, Place(number, line.index("[") + 1))
        elif pair := _PAIR.match(line):
            name = pair[1].replace(" ", "")
            yield _Pair(f"{table}.{name}" if table else name, Place(number, pair.end() + 1))


def _room_for(lines: list[str], table: str, name: str) -> int:
    """Below the comment that shows the value, else at the end of its table; a table that is not there begins at the end."""
    start, end, here = 0, len(lines), ""
    for number, line in enumerate(lines):
        if heading := _TABLE.fullmatch(line):
            if here == table:
                end = number
                break
            here = heading[1].strip()
            start = number + 1
    if here != table:
        return len(lines)
    for number in range(start, end):
        if re.match(rf"\s*#\s*{re.escape(name)}\s*=", lines[number]):
            return number + 1
    while end > start and not lines[end - 1].strip():
        end -= 1
    return end


def _written(value: Scalar) -> str:
    # JSON writes strings, numbers and booleans as TOML does.
    return msgspec.json.encode(value).decode()


def _check_only_this_changed(before: str, after: str, key: str, value: Scalar) -> None:
    try:
        expected, found = tomllib.loads(before), tomllib.loads(after)
    except tomllib.TOMLDecodeError:
        found, expected = {}, {"": None}
    inner = expected
    *tables, name = key.split(".")
    for table in tables:
        inner = inner.setdefault(table, {})
    inner[name] = value
    if found != expected:
        raise InvalidInput(
            f"{key} cannot be set without rewriting the file", hint="edit it by hand: holdfast config path"
        )
