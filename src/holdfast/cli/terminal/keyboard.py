"""Keyboard input for questions: single keys on an ordinary terminal, whole lines in plain mode."""

import asyncio
import codecs
import os
import re
import select
import termios
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from holdfast.cli.terminal.paste_guard import PAUSE_SECONDS

_KEY = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO.|\x1b.|.", re.DOTALL)
_LOCAL_FLAGS, _CONTROL_CHARACTERS = 3, 6
_LOOK_SECONDS = 0.02
_READ_BYTES = 4096
_END = "\x04"

OnKey = Callable[[str], None]


class Keyboard(Protocol):
    """A source of keys and lines."""

    @property
    def is_by_line(self) -> bool:
        """Whether an answer is a line that ends with Enter, not a single key."""
        ...

    @contextmanager
    def listening(self, on_key: OnKey) -> Iterator[None]:
        """Pass every key to `on_key` while the block runs. Earlier input is discarded."""
        ...

    async def line(self, prompt: str, text: str = "") -> str | None:
        """Read one line, with `text` as its initial content; None if the user leaves."""
        ...


@contextmanager
def hidden_typing(descriptor: int = 0) -> Iterator[None]:
    """Do not echo what is typed while the block runs: a line editor that starts in it shows it in its prompt."""
    before = termios.tcgetattr(descriptor)
    hidden = termios.tcgetattr(descriptor)
    hidden[_LOCAL_FLAGS] &= ~termios.ECHO
    termios.tcsetattr(descriptor, termios.TCSANOW, hidden)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, before)


class RawKeyboard:
    """Reads single keys from a terminal, without echo. Ctrl-C and Ctrl-D arrive as keys."""

    is_by_line = False

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor

    @contextmanager
    def listening(self, on_key: OnKey) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        before = termios.tcgetattr(self._descriptor)
        single = termios.tcgetattr(self._descriptor)
        single[_LOCAL_FLAGS] &= ~(termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN)
        single[_CONTROL_CHARACTERS][termios.VMIN] = 1
        single[_CONTROL_CHARACTERS][termios.VTIME] = 0
        # TCSAFLUSH: input from before the question was not meant for it.
        termios.tcsetattr(self._descriptor, termios.TCSAFLUSH, single)

        timer: asyncio.Handle

        def look() -> None:
            nonlocal timer
            timer = loop.call_later(_LOOK_SECONDS, look)
            try:
                content = self._read(single)
            except (EOFError, OSError, termios.error):  # the terminal was closed
                timer.cancel()
                on_key(_END)
                return
            for key in _KEY.findall(decoder.decode(content)):
                on_key(key)

        # A timer looks for keys, not a reader of the loop: the line editor may give the terminal up after the question has
        # taken it, and would take our reader along.
        timer = loop.call_soon(look)
        try:
            yield
        finally:
            timer.cancel()
            termios.tcsetattr(self._descriptor, termios.TCSAFLUSH, before)

    def _read(self, single: list[Any]) -> bytes:  # as termios has it
        """What was typed so far; raises EOFError at its end. Takes the mode of the terminal back if another has set it."""
        if termios.tcgetattr(self._descriptor)[_LOCAL_FLAGS] & termios.ICANON:
            termios.tcsetattr(self._descriptor, termios.TCSAFLUSH, single)
        if not select.select([self._descriptor], [], [], 0)[0]:
            return b""
        content = os.read(self._descriptor, _READ_BYTES)
        if not content:
            raise EOFError
        return content

    async def line(self, prompt: str, text: str = "") -> str | None:
        from prompt_toolkit import PromptSession

        try:
            return await PromptSession[str]().prompt_async(prompt, default=text, handle_sigint=False)
        except (EOFError, KeyboardInterrupt):
            return None


class LineKeyboard:
    """Reads lines from a pollable descriptor. While a question is on the screen, the lines go to it."""

    is_by_line = True

    def __init__(self, descriptor: int = 0, write: Callable[[str], None] = lambda _: None) -> None:
        self._descriptor = descriptor
        self._write = write
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._partial = ""
        self._lines: deque[str] = deque()
        self._together: list[str] = []
        """Lines that arrive one after another without a pause: a paste, which is one message."""
        self._pause: asyncio.TimerHandle | None = None
        self._is_at_end = False
        self._arrived = asyncio.Event()
        self._on_line: OnKey | None = None

    def open(self) -> None:
        """Start reading."""
        asyncio.get_running_loop().add_reader(self._descriptor, self._read)

    def close(self) -> None:
        """Stop reading."""
        asyncio.get_running_loop().remove_reader(self._descriptor)

    @contextmanager
    def listening(self, on_key: OnKey) -> Iterator[None]:
        self._lines.clear()
        self._together.clear()
        self._partial = ""
        self._on_line = on_key
        if self._is_at_end:
            on_key(_END)  # the input ended before the question
        try:
            yield
        finally:
            self._on_line = None

    async def line(self, prompt: str, text: str = "") -> str | None:
        self._write(f"{prompt}{f'(was: {text}) ' if text else ''}")
        answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        with self.listening(lambda line: None if answer.done() else answer.set_result(line)):
            line = await answer
        return None if line == _END else line

    async def next(self) -> str | None:
        """The next line; None at the end of input."""
        while not self._lines:
            if self._is_at_end:
                return None
            self._arrived.clear()
            await self._arrived.wait()
        return self._lines.popleft()

    def _read(self) -> None:
        content = os.read(self._descriptor, _READ_BYTES)
        if not content:
            self.close()
            self._deliver_together()
            self._is_at_end = True
            self._arrived.set()
            if self._on_line is not None:
                self._on_line(_END)
            return
        *complete, self._partial = (self._partial + self._decoder.decode(content)).split("\n")
        for line in complete:
            self._deliver(line)

    def _deliver(self, line: str) -> None:
        if self._on_line is not None:
            self._on_line(line.strip())
            return
        self._together.append(line)
        if self._pause is not None:
            self._pause.cancel()
        self._pause = asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._deliver_together)

    def _deliver_together(self) -> None:
        if self._together:
            self._lines.append("\n".join(self._together))
            self._together.clear()
            self._arrived.set()
