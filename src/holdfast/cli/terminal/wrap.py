"""Text layout in terminal cells: width, clipping, padding and wrapping.

A wide character fills two cells, a combining mark none, and an emoji sequence such as a family two. `wcwidth` knows which; it
is loaded for text outside ASCII only, because its import takes longer than `holdfast --help` may.
"""

import re
from collections.abc import Iterator

HIGHLIGHT_MARK = "\x02"
"""Encloses text that the console highlights. It fills no cell."""

_WORD = re.compile(r"\s*\S+")
_LABEL = re.compile(r"\s*(?:\[\d+\] |[|>] |\S+(?: \S+)*\s{2,})?")
_MAX_INDENT = 24


def cell_width(text: str) -> int:
    """How many terminal cells the text fills."""
    if text.isascii():
        return len(text) - text.count(HIGHLIGHT_MARK)
    from wcwidth import width

    return width(text.replace(HIGHLIGHT_MARK, ""), control_codes="ignore")


def clip(text: str, width: int) -> str:
    """The longest start of the text that fits into `width` cells."""
    return text if cell_width(text) <= width else next(_pieces(text, width))


def ellipsize(text: str, width: int) -> str:
    """The text in at most `width` cells, with an ellipsis where it was clipped."""
    return text if cell_width(text) <= width else f"{clip(text, width - 1).rstrip()}…"


def pad(text: str, width: int) -> str:
    """The text with spaces appended, up to `width` cells."""
    return text + " " * (width - cell_width(text))


def wrap(text: str, width: int) -> list[str]:
    """The text in lines of at most `width` cells, broken between words. A word longer than a line is split."""
    lines, line = [], ""
    for word in _WORD.findall(
        text.rstrip()
    ):  # a search from every space at the end would take quadratic time
        if cell_width(line + word) <= width:
            line += word
            continue
        if line:
            lines.append(line)
        *full, line = _pieces(word.lstrip(), width, splits=True)
        lines += full
    return [*lines, line]


def fold(text: str, width: int) -> str:
    """Wrap every line of the text. Continuation lines align with the text after a label such as `why:   ` or `[1] `."""
    return "\n".join(_fold_line(line, width) for line in text.split("\n"))


def _fold_line(line: str, width: int) -> str:
    if cell_width(line) <= width:
        return line
    label = _LABEL.match(line)
    indent = min(label.end() if label else 0, _MAX_INDENT)
    if indent > width // 2:
        indent = min(len(line) - len(line.lstrip()), width // 2)
    first, *rest = wrap(line[indent:], width - cell_width(line[:indent]))
    return "\n".join([f"{line[:indent]}{first}", *(f"{'':{indent}}{each}" for each in rest)])


def _pieces(text: str, width: int, *, splits: bool = False) -> Iterator[str]:
    """The text in pieces of at most `width` cells; with `splits`, each has one character at least, however narrow the line."""
    from wcwidth import iter_graphemes

    piece = ""
    for character in iter_graphemes(text):
        if (piece or not splits) and cell_width(piece + character) > width:
            yield piece
            piece = ""
        piece += character
    yield piece
