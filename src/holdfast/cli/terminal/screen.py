"""The screen of a chat: writes lines from several tasks in order, and never into the line that the user is editing."""

import asyncio
import fcntl
import os
import shutil
import struct
import sys
import termios
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from holdfast.cli.terminal.console import Tone, paint, paint_line
from holdfast.cli.terminal.device_attributes import SIXEL, read_device_attributes
from holdfast.cli.terminal.live_region import LiveRegion, Section
from holdfast.cli.terminal.notifier import Focus
from holdfast.cli.terminal.progress import progress_hidden
from holdfast.cli.terminal.wrap import fold
from holdfast.core import escape_invisible

if TYPE_CHECKING:
    from holdfast.cli.terminal.pictures import Protocol


class PlainScreen:
    """Linear output: each line is written once, below the last one, and nothing is redrawn."""

    is_plain = True

    def live(self, section: Section, text: str) -> None:
        """Nothing is redrawn here, so nothing unfinished is shown."""

    def answer(self, text: str) -> None:
        """Write part of the agent's answer to stdout."""
        print(text, file=sys.stdout, flush=True)

    def say(self, text: str = "", tone: Tone = "plain", *, folds: bool = False) -> None:
        """Write a message to stderr, without colour and wrapping."""
        print(escape_invisible(text), file=sys.stderr, flush=True)

    def say_line(self, pieces: Sequence[tuple[str, bool]], tone: Tone = "plain") -> None:
        """Write a message in pieces, without emphasis."""
        self.say("".join(text for text, _ in pieces))

    async def picture(self, content: bytes) -> None:
        """No picture is drawn here; the path that was written before says which one it is."""

    async def settle(self) -> None:
        """Wait until everything is written."""

    def write_pending(self) -> None:
        """Nothing is ever pending here."""

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """Reserve the screen for a question."""
        yield


class LiveScreen:
    """Output above the line editor, which is suspended for each batch of lines and for each question."""

    is_plain = False

    def __init__(self) -> None:
        self.region = LiveRegion()
        self.focus = Focus()
        self.redraw: Callable[[], None] = lambda: None
        """Draws the editor and the live region again, soon."""
        self.available = asyncio.Event()
        """Set while no question has the screen. The editor waits for it before it starts a line."""
        self.available.set()
        self._pictures: tuple[Protocol | None] | None = None
        """How the terminal draws pictures, once it is known."""
        self._pending: list[str] = []
        self._lock = asyncio.Lock()
        self._flushing: asyncio.Task[None] | None = None

    def live(self, section: Section, text: str) -> None:
        """Show text that is still in progress above the input line."""
        self.region.show(section, text)
        self.redraw()

    def answer(self, text: str) -> None:
        """Write part of the agent's answer."""
        self._put(text)

    def say(self, text: str = "", tone: Tone = "plain", *, folds: bool = False) -> None:
        """Write a message."""
        text = escape_invisible(text)
        if folds:
            text = fold(text, shutil.get_terminal_size().columns)
        self._put(paint(text, tone, sys.stdout))

    def say_line(self, pieces: Sequence[tuple[str, bool]], tone: Tone = "plain") -> None:
        """Write a message in pieces; the marked ones are emphasised."""
        self._put(paint_line(pieces, tone, sys.stdout))

    async def picture(self, content: bytes) -> None:
        """Draw a picture where the terminal can. The path that was written before says which one it is."""
        from holdfast.cli.terminal.pictures import draw_picture, picture_protocol

        if self._pictures is None:
            self._pictures = (picture_protocol(os.environ) or await self._asked_protocol(),)
        columns = shutil.get_terminal_size().columns - 2
        # In a thread, because reading the pixels of a large picture takes a while.
        drawn = await asyncio.to_thread(
            draw_picture, content, self._pictures[0], columns=columns, cell=_cell_size()
        )
        if drawn:
            self._put(drawn)

    async def _asked_protocol(self) -> "Protocol | None":
        async with self.exclusive():
            return "sixel" if SIXEL in await read_device_attributes() else None

    async def settle(self) -> None:
        """Wait until everything is written."""
        while self._flushing is not None and not self._flushing.done():
            await asyncio.wait({self._flushing})

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """Reserve the screen for a question. Other output is held back until the question is answered."""
        from prompt_toolkit.application import in_terminal

        async with self._lock:
            self.available.clear()
            self.focus.report(False)
            try:
                async with in_terminal():
                    self._write()
                    yield
            finally:
                self.focus.report(True)
                self.available.set()

    def write_pending(self) -> None:
        """Write the held-back output during a question. Call it only while no input is half typed."""
        if not self.available.is_set():
            self._write()

    def _put(self, text: str) -> None:
        self._pending.append(text)
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.ensure_future(self._flush())

    async def _flush(self) -> None:
        from prompt_toolkit.application import in_terminal

        async with self._lock:
            if self._pending:
                async with in_terminal():
                    self._write()

    def _write(self) -> None:
        lines, self._pending = self._pending, []
        with progress_hidden():
            for line in lines:
                sys.stdout.write(f"{line}\n")
            sys.stdout.flush()


def _cell_size() -> tuple[int, int]:
    """The size of a character in pixels, as far as the terminal says it."""
    with suppress(OSError):
        rows, columns, width, height = struct.unpack("HHHH", fcntl.ioctl(1, termios.TIOCGWINSZ, bytes(8)))
        if rows and columns and width and height:
            return width // columns or 1, height // rows or 1
    from holdfast.cli.terminal.pictures import USUAL_CELL

    return USUAL_CELL


Screen = PlainScreen | LiveScreen
