"""Streaming of the agent's answer: text arrives in pieces and is shown in whole Markdown blocks, so that nothing is redrawn."""

import io
import re
import shutil
from collections.abc import Callable

from holdfast.core import escape_invisible

MAX_WIDTH = 100
_BLANK_ENDS = re.compile(r"\A(?:(?:\x1b\[[\d;]*m|[ ])*\n)+|(?:\n(?:\x1b\[[\d;]*m|[ ])*)+\Z")


class AnswerStream:
    """Collects pieces of text and shows every finished Markdown block."""

    def __init__(self, show: Callable[[str], None], *, is_plain: bool) -> None:
        self._show = show
        self._is_plain = is_plain
        self._text = ""

    def __call__(self, piece: str) -> None:
        self._text += piece
        while (end := _end_of_block(self._text)) is not None:
            block, self._text = self._text[:end], self._text[end:]
            self._show_block(block)

    def end(self) -> None:
        """Show the rest; no more pieces follow."""
        block, self._text = self._text, ""
        self._show_block(block)

    def _show_block(self, block: str) -> None:
        if not block.strip():
            return
        text = escape_invisible(block.strip("\n"))
        self._show(text if self._is_plain else render(text))


def _end_of_block(text: str) -> int | None:
    """The end of the first complete block: an empty line outside a code fence."""
    is_fenced = False
    position = 0
    for line in text.splitlines(keepends=True):
        position += len(line)
        if line.lstrip().startswith(("```", "~~~")):
            is_fenced = not is_fenced
        if not line.endswith("\n"):
            return None
        if not is_fenced and not line.strip() and text[:position].strip():
            return position
    return None


def render(text: str) -> str:
    """Render Markdown for the width of this terminal."""
    from rich.console import Console

    from holdfast.cli.terminal.markdown import THEME, LeftMarkdown

    width = min(MAX_WIDTH, shutil.get_terminal_size().columns)
    out = io.StringIO()
    # hyperlinks=False: print the target of a link instead of hiding it behind its text.
    console = Console(file=out, force_terminal=True, width=width, highlight=False, theme=THEME)
    console.print(LeftMarkdown(text, hyperlinks=False))
    return f"{_BLANK_ENDS.sub('', out.getvalue())}\n"
