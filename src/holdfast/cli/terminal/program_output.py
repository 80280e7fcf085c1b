"""Output of a program in the chat: whole lines, marked as its own words."""

import re
from collections.abc import Callable

from holdfast.core import pluralize

_STYLING = re.compile(r"\x1b\[(?:[0-9;:]*[mK]|\?25[hl])")
"""Colours, erasing the rest of a line, hiding the cursor: what a progress bar sends."""
_MAX_LIVE_CHARACTERS = 1_000


class ProgramOutput:
    """Receives text as it arrives and shows it line by line; `live` shows a line that has not ended."""

    def __init__(self, say: Callable[[str], None], *, live: Callable[[str], None]) -> None:
        self._say, self._live = say, live
        self._line = ""
        self._overwritten = 0
        """How often the line has overwritten itself, as a progress bar does."""

    def __call__(self, text: str) -> None:
        *lines, last = text.split("\n")
        for line in lines:
            self._add(line)
            self._say_line()
        self._add(last)
        self._live(as_shown(self._line[-_MAX_LIVE_CHARACTERS:]).rstrip("\r"))

    def end(self) -> None:
        """Show a last line that did not end."""
        if self._line:
            self._say_line()

    def _add(self, text: str) -> None:
        text = self._line + text
        form = text.rstrip("\r")
        *earlier, last = form.split("\r")
        self._line = last + text[len(form) :][:1]  # what a return at the end does depends on what follows
        self._overwritten += sum(map(bool, earlier))

    def _say_line(self) -> None:
        states = pluralize(self._overwritten, "earlier state")
        note = f" (after {states} of this line)" if self._overwritten else ""
        self._say(f"  | {as_shown(self._line).rstrip(chr(13))}{note}")
        self._line, self._overwritten = "", 0


def as_shown(text: str) -> str:
    """Output without colours, and of each line what a terminal shows last. A return at the end stays: more may follow."""
    *ended, last = _STYLING.sub("", text).split("\n")
    # A terminal ends each line with both characters.
    lines = [line.rstrip("\r").rpartition("\r")[2] for line in ended]
    form = last.rstrip("\r")
    return "\n".join([*lines, form.rpartition("\r")[2] + last[len(form) :]])
