"""How much room text takes on a terminal: a wide letter fills two cells, a mark on a letter none.

Folding: a line that is too long for the terminal goes on below, in line with its words and not at the edge.
"""

import re
import unicodedata
from collections.abc import Iterator
from itertools import accumulate

MARK = "\x02"
"""Stands around what is to be painted, and fills no cell."""

_WORD = re.compile(r"\s*\S+")


def cell_width(text: str) -> int:
    """How many cells of a terminal the text fills."""
    return len(text) - text.count(MARK) if text.isascii() else sum(map(_cells_of, text))


def clip(text: str, width: int) -> str:
    """As much of the text as fits into so many cells."""
    if cell_width(text) <= width:
        return text
    filled = accumulate(map(_cells_of, text))
    return "".join(letter for letter, end in zip(text, filled, strict=True) if end <= width)


def ellipsize(text: str, width: int) -> str:
    """The text in at most so many cells, with a sign at its end where something was left out."""
    return text if cell_width(text) <= width else f"{clip(text, width - 1).rstrip()}…"


def pad(text: str, width: int) -> str:
    """The text with spaces after it, up to so many cells."""
    return text + " " * (width - cell_width(text))


def wrap(text: str, width: int) -> list[str]:
    """The text in lines of at most so many cells, broken between words; a word that is longer than a line is cut."""
    lines, line = [], ""
    for word in _WORD.findall(text):
        if cell_width(line + word) <= width:
            line += word
            continue
        if line:
            lines.append(line)
        *whole, line = _pieces(word.lstrip(), width)
        lines += whole
    return [*lines, line]


def _pieces(text: str, width: int) -> Iterator[str]:
    """The text in pieces that fit, one letter at least in each."""
    piece, room = "", width
    for letter in text:
        need = _cells_of(letter)
        if need > room and piece:
            yield piece
            piece, room = "", width
        piece += letter
        room -= need
    yield piece


def _cells_of(letter: str) -> int:
    if letter == MARK or unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


_LABEL = re.compile(r"\s*(?:\[\d+\] |\S+(?: \S+)*\s{2,})?")
_DEEPEST = 24


def fold(text: str, width: int) -> str:
    """Every line of the text in lines of at most this width; what follows a label, such as `why:   ` or `[1] `, stays beside it."""
    return "\n".join(_folded(line, width) for line in text.split("\n"))


def _folded(line: str, width: int) -> str:
    if cell_width(line) <= width:
        return line
    label = _LABEL.match(line)
    hang = min(label.end() if label else 0, _DEEPEST)
    if hang > width // 2:
        hang = min(len(line) - len(line.lstrip()), width // 2)
    first, *rest = wrap(line[hang:], width - cell_width(line[:hang]))
    return "\n".join([f"{line[:hang]}{first}", *(f"{'':{hang}}{each}" for each in rest)])
