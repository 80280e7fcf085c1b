"""Streaming of the agent's answer: each piece is visible when it arrives, and a finished Markdown block is printed for good.

The unfinished block and the reasoning are in the live region of the screen. In plain mode finished blocks are all there is.
"""

import io
import re
import shutil
from collections.abc import Callable
from typing import Protocol, assert_never

from holdfast.cli.terminal.console import Tone
from holdfast.cli.terminal.live_region import Section
from holdfast.core import escape_invisible, pluralize
from holdfast.models import ReplyPiece

MAX_WIDTH = 100
_BLANK = re.compile(r"(?:\x1b\[[\d;]*+m|[ ])*+")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")


class AnswerScreen(Protocol):
    """What the stream needs of a screen."""

    is_plain: bool

    def answer(self, text: str) -> None:
        """Print part of the answer for good."""
        ...

    def say(self, text: str = "", tone: Tone = "plain", *, folds: bool = False) -> None:
        """Print a message."""
        ...

    def live(self, section: Section, text: str) -> None:
        """Show text that is still in progress."""
        ...


class AnswerStream:
    """Receives the pieces of a reply and shows them. `fold` keeps a text that is shown as one line, to be unfolded."""

    def __init__(self, screen: AnswerScreen, *, fold: Callable[[str, str], None]) -> None:
        self._screen = screen
        self._fold = fold
        self._blocks = BlockSplitter()
        self._thinking = ""

    def __call__(self, piece: ReplyPiece) -> None:
        match piece.kind:
            case "text":
                self._end_thinking()
                for block in self._blocks.add(piece.text):
                    self._print(block)
                self._screen.live("answer", self._blocks.unfinished)
            case "thinking":
                self._thinking += piece.text
                self._screen.live("thinking", self._thinking)
            case "retry":
                self.end()
                self._screen.say(f"  {piece.text}", "dim", folds=True)
            case _:
                assert_never(piece.kind)

    def end(self) -> None:
        """Print the rest; no more pieces of this reply follow."""
        self._end_thinking()
        self._print(self._blocks.end())
        self._screen.live("answer", "")

    def _end_thinking(self) -> None:
        if thinking := self._thinking.strip():
            lines = pluralize(thinking.count("\n") + 1, "line")
            self._fold(f"thought, {lines}", thinking)
        if self._thinking:
            self._thinking = ""
            self._screen.live("thinking", "")

    def _print(self, block: str) -> None:
        if block.strip():
            text = escape_invisible(block.strip("\n"))
            self._screen.answer(text if self._screen.is_plain else render(text))


class BlockSplitter:
    """Splits text that arrives in pieces into Markdown blocks.

    A block ends with empty lines outside a code fence, before a line that is not indented: an indented one continues a list.
    Each line is looked at once, however long the block is.
    """

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._rest = ""
        self._fence = ""
        self._is_after_blank = False

    @property
    def unfinished(self) -> str:
        """The text of the block that has not ended."""
        return "".join(self._lines) + self._rest

    def add(self, piece: str) -> list[str]:
        """Add a piece and return the blocks that it ends."""
        *whole, self._rest = (self._rest + piece).split("\n")
        ended: list[str] = []
        for line in whole:
            self._end_before(line, ended)
            self._lines.append(f"{line}\n")
            self._follow_fence(line)
            self._is_after_blank = not self._fence and not line.strip()
        self._end_before(self._rest, ended)
        return ended

    def end(self) -> str:
        """Return the last block and start over."""
        block = self.unfinished
        self._lines.clear()
        self._rest = self._fence = ""
        self._is_after_blank = False
        return block

    def _end_before(self, line: str, ended: list[str]) -> None:
        if self._is_after_blank and line[:1].strip():
            ended.append("".join(self._lines))
            self._lines.clear()
            self._is_after_blank = False

    def _follow_fence(self, line: str) -> None:
        found = _FENCE.match(line)
        if found is None:
            return
        marker = found[1]
        if not self._fence:
            self._fence = marker
        # A fence ends with a line of at least as many of the same characters and nothing else.
        elif marker.startswith(self._fence) and not line.strip().strip(marker[0]):
            self._fence = ""


def render(text: str) -> str:
    """Render Markdown for the width of this terminal."""
    from rich.console import Console

    from holdfast.cli.terminal.markdown import THEME, LeftMarkdown

    width = min(MAX_WIDTH, shutil.get_terminal_size().columns)
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=width, highlight=False, theme=THEME)
    console.print(LeftMarkdown(text))
    return f"{_without_blank_ends(out.getvalue())}\n"


def _without_blank_ends(text: str) -> str:
    """The text without empty lines at its start and end. Spaces and colours do not fill a line."""
    lines = text.split("\n")
    start, end = 0, len(lines)
    while start < end - 1 and _BLANK.fullmatch(lines[start]):
        start += 1
    while end > start + 1 and _BLANK.fullmatch(lines[end - 1]):
        end -= 1
    return "\n".join(lines[start:end])
