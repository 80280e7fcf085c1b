"""TOML text as a person wrote it: parsing, and the line and column of each key. `tomllib` does not report positions."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from holdfast.core.errors import InvalidConfig

_TABLE = re.compile(r"\s*\[([A-Za-z0-9_.\s-]+)\]\s*(?:#.*)?")
_PAIR = re.compile(r"\s*+([A-Za-z0-9_.\s-]++)=\s*")
_SYNTAX_ERROR = re.compile(r"(?P<what>.*) \(at line (?P<line>\d+), column (?P<column>\d+)\)")


class Position(NamedTuple):
    """A place in the text; line and column count from 1."""

    line: int
    column: int


def parse_toml(text: str, source: str) -> dict[str, object]:
    """Parse a TOML text. Raises InvalidConfig with line and column."""
    if not text.strip():
        return {}
    import tomllib  # here, because most projects and many people have no configuration

    try:
        return tomllib.loads(text)
    except RecursionError:
        raise InvalidConfig(
            f"{source}: it is nested too deeply", hint="fix it, or move the file away"
        ) from None
    except tomllib.TOMLDecodeError as error:
        found = _SYNTAX_ERROR.fullmatch(str(error))
        lines = text.rstrip().splitlines() or [""]
        line, column = (found["line"], found["column"]) if found else (len(lines), len(lines[-1]) + 1)
        what = found["what"] if found else str(error)
        raise InvalidConfig(
            f"{source}:{line}:{column}: {what}", hint="fix the line, or move the file away"
        ) from error


def position_of(text: str, key: str) -> Position | None:
    """The position of a dotted key's value, or of the table or inline table that contains it."""
    positions = _positions(text)
    while key:
        if key in positions:
            return positions[key]
        key = key.rpartition(".")[0]
    return None


@lru_cache(maxsize=2)
def _positions(text: str) -> dict[str, Position]:
    """The position of each key. Kept, because a project may bring a long file, and every key of it is looked up."""
    return dict(_find_positions(text))


def _find_positions(text: str) -> Iterator[tuple[str, Position]]:
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if heading := _TABLE.fullmatch(line):
            table = heading[1].strip()
            yield table, Position(number, line.index("[") + 1)
        elif pair := _PAIR.match(line):
            name = "".join(pair[1].split())
            yield f"{table}.{name}" if table else name, Position(number, pair.end() + 1)
