"""The keyboard while a question is on the screen: single keys on an ordinary terminal, whole lines in plain mode."""

import asyncio
import codecs
import os
import re
import termios
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

_KEY = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1bO.|\x1b.|.", re.DOTALL)
_LOCAL_FLAGS, _CONTROL_CHARACTERS = 3, 6
_READ_BYTES = 4096
_END = "\x04"

OnKey = Callable[[str], None]


class Keyboard(Protocol):
    """Where keys and lines come from."""

    @property
    def is_by_line(self) -> bool:
        """Whether an answer is a line with Enter after it, and not a single key."""
        ...

    @contextmanager
    def listening(self, on_key: OnKey) -> Iterator[None]:
        """Hand every key to a function; whatever was typed before is thrown away."""
        ...

    async def line(self, prompt: str, text: str = "") -> str | None:
        """One line of words, beginning with `text`; None where the person leaves."""
        ...


class RawKeyboard:
    """Keys of a terminal one by one, without echo. Ctrl-C and Ctrl-D come as keys."""

    is_by_line = False

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor

    @contextmanager
    def listening(self, on_key: OnKey) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        decoder = codecs.getincrementaldecoder("utf-8")("replace")

        def read() -> None:
            content = os.read(self._descriptor, _READ_BYTES)
            if not content:
                loop.remove_reader(self._descriptor)
                on_key(_END)  # a terminal that went away has nobody at it
            for key in _KEY.findall(decoder.decode(content)):
                on_key(key)

        before = termios.tcgetattr(self._descriptor)
        single = termios.tcgetattr(self._descriptor)
        single[_LOCAL_FLAGS] &= ~(termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN)
        single[_CONTROL_CHARACTERS][termios.VMIN] = 1
        single[_CONTROL_CHARACTERS][termios.VTIME] = 0
        # TCSAFLUSH: what was typed before the question appeared was not meant for it.
        termios.tcsetattr(self._descriptor, termios.TCSAFLUSH, single)
        loop.add_reader(self._descriptor, read)
        try:
            yield
        finally:
            loop.remove_reader(self._descriptor)
            termios.tcsetattr(self._descriptor, termios.TCSAFLUSH, before)

    async def line(self, prompt: str, text: str = "") -> str | None:
        from prompt_toolkit import PromptSession

        try:
            return await PromptSession[str]().prompt_async(prompt, default=text)
        except (EOFError, KeyboardInterrupt):
            return None


class LineKeyboard:
    """Whole lines from a descriptor that can be waited on; a question takes them while it is on the screen."""

    is_by_line = True

    def __init__(self, descriptor: int = 0, write: Callable[[str], None] = lambda _: None) -> None:
        self._descriptor = descriptor
        self._write = write
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._partial = ""
        self._lines: deque[str] = deque()
        self._is_at_end = False
        self._arrived = asyncio.Event()
        self._on_line: OnKey | None = None

    def open(self) -> None:
        """Begin to read."""
        asyncio.get_running_loop().add_reader(self._descriptor, self._read)

    def close(self) -> None:
        """Read no more."""
        asyncio.get_running_loop().remove_reader(self._descriptor)

    @contextmanager
    def listening(self, on_key: OnKey) -> Iterator[None]:
        self._lines.clear()
        self._partial = ""
        self._on_line = on_key
        if self._is_at_end:
            on_key(_END)  # whoever left while nothing was asked has left
        try:
            yield
        finally:
            self._on_line = None

    async def line(self, prompt: str, text: str = "") -> str | None:
        self._write(f"{prompt}{f'(was: {text}) ' if text else ''}")
        words: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        with self.listening(lambda line: None if words.done() else words.set_result(line)):
            line = await words
        return None if line == _END else line

    async def next(self) -> str | None:
        """The next line; None at the end."""
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
            self._is_at_end = True
            self._arrived.set()
            if self._on_line is not None:
                self._on_line(_END)
            return
        *whole, self._partial = (self._partial + self._decoder.decode(content)).split("\n")
        for line in whole:
            self._deliver(line)

    def _deliver(self, line: str) -> None:
        if self._on_line is not None:
            self._on_line(line.strip())
        else:
            self._lines.append(line)
            self._arrived.set()
