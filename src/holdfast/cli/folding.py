"""Folding: a line that is too long for the terminal goes on below, in line with its words and not at the edge."""

import re

from holdfast.cli.cells import cells, wrapped

_LABEL = re.compile(r"\s*(?:\[\d+\] |\S+(?: \S+)*\s{2,})?")
_DEEPEST = 24


def fold(text: str, width: int) -> str:
    """Every line of the text in lines of at most this width; what follows a label, such as `why:   ` or `[1] `, stays beside it."""
    return "\n".join(_folded(line, width) for line in text.split("\n"))


def _folded(line: str, width: int) -> str:
    if cells(line) <= width:
        return line
    label = _LABEL.match(line)
    hang = min(label.end() if label else 0, _DEEPEST)
    if hang > width // 2:
        hang = min(len(line) - len(line.lstrip()), width // 2)
    first, *rest = wrapped(line[hang:], width - cells(line[:hang]))
    return "\n".join([f"{line[:hang]}{first}", *(f"{'':{hang}}{each}" for each in rest)])
