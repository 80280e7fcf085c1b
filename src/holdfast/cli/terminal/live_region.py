"""The live region: what is in progress, drawn above the input line and replaced when it settles.

The code that runs, its output, the model's reasoning and the unfinished end of its answer are shown here while they change.
What is finished is printed once above the region and never redrawn, so nothing is shown twice.
"""

from typing import Literal

from holdfast.cli.terminal.wrap import wrap
from holdfast.core import escape_invisible

Section = Literal["code", "output", "thinking", "answer"]
_MAX_LINES: dict[Section, int] = {"code": 8, "output": 8, "thinking": 3, "answer": 12}
"""The lines of each section, in their order on the screen. Of a longer text the end is shown, of code the start."""
_STYLES: dict[Section, str] = {"code": "#888888", "output": "", "thinking": "italic #888888", "answer": ""}
_RESERVED_ROWS = 6
"""Rows for the input, its menu and the status line."""
_MIN_ROWS = 3


class LiveRegion:
    """The sections that have something to show."""

    def __init__(self) -> None:
        self._texts: dict[Section, str] = {}

    def show(self, section: Section, text: str) -> None:
        """Replace what a section shows; an empty text removes it."""
        self._texts[section] = text

    def clear(self) -> None:
        """Show nothing."""
        self._texts.clear()

    def lines(self, columns: int, rows: int) -> list[tuple[str, str]]:
        """Each line to draw with its style. It never fills the screen: the newest lines are kept."""
        drawn: list[tuple[str, str]] = []
        for section, most in _MAX_LINES.items():
            text = self._texts.get(section, "")
            lines = _head(text, columns, most) if section == "code" else _tail(text, columns, most)
            drawn += [(_STYLES[section], line) for line in lines]
        return drawn[-max(_MIN_ROWS, rows - _RESERVED_ROWS) :]


def _tail(text: str, columns: int, most: int) -> list[str]:
    """The last lines of a text. Only its end is looked at, because it may be long and is drawn often."""
    lines = _wrapped(text[-most * columns :].rstrip("\n"), columns)
    return lines[-most:]


def _head(text: str, columns: int, most: int) -> list[str]:
    lines = _wrapped(text[: most * columns].rstrip("\n"), columns)
    return lines if len(lines) <= most else [*lines[: most - 1], "…"]


def _wrapped(text: str, columns: int) -> list[str]:
    if not text:
        return []
    return [
        piece
        for line in escape_invisible(text).expandtabs(4).split("\n")
        for piece in (wrap(line, columns) if line.strip() else [""])
    ]
