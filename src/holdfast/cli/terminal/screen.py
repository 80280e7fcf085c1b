"""The screen of a conversation: lines from many places, written in order, and never into a line that is being edited."""

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from holdfast.cli.terminal.console import Tone, paint
from holdfast.cli.terminal.progress import progress_hidden
from holdfast.cli.terminal.wrap import fold
from holdfast.core import escape_invisible


class PlainScreen:
    """Linear: every line is written once, below the last one, and nothing is ever drawn again."""

    is_plain = True

    def answer(self, text: str) -> None:
        """A piece of the agent's answer: data, on stdout."""
        print(text, file=sys.stdout, flush=True)

    def say(self, text: str = "", tone: Tone = "plain", *, folds: bool = False) -> None:
        """News, on stderr; a tone is only a colour and a fold only for the eye, and there is neither here."""
        print(escape_invisible(text), file=sys.stderr, flush=True)

    async def settle(self) -> None:
        """Wait until everything is written."""

    def write_pending(self) -> None:
        """Nothing is ever held back here."""

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """Have the screen for oneself, to ask a question."""
        yield


class LiveScreen:
    """Above a line that is being edited: the editor steps aside for each batch of lines, and for a question."""

    is_plain = False

    def __init__(self) -> None:
        self.available = asyncio.Event()
        """Set while no question has the screen; the editor waits for it before it begins a line."""
        self.available.set()
        self._pending: list[str] = []
        self._lock = asyncio.Lock()
        self._flushing: asyncio.Task[None] | None = None

    def answer(self, text: str) -> None:
        """A piece of the agent's answer."""
        self._put(text)

    def say(self, text: str = "", tone: Tone = "plain", *, folds: bool = False) -> None:
        """News."""
        text = escape_invisible(text)
        if folds:
            text = fold(text, shutil.get_terminal_size().columns)
        self._put(paint(text, tone, sys.stdout))

    async def settle(self) -> None:
        """Wait until everything is written."""
        while self._flushing is not None and not self._flushing.done():
            await asyncio.wait({self._flushing})

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """Have the screen for oneself, to ask a question; what others say meanwhile comes after it."""
        from prompt_toolkit.application import in_terminal

        async with self._lock:
            self.available.clear()
            try:
                async with in_terminal():
                    self._write()
                    yield
            finally:
                self.available.set()

    def write_pending(self) -> None:
        """Write what was held back during a question: whoever has the screen calls it when nothing is half typed."""
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


Screen = PlainScreen | LiveScreen
