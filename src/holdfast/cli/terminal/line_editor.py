"""Where a person's lines come from: an editor with history and completion, or plain lines in plain mode."""

import asyncio
import signal
import termios
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from holdfast.cli.terminal.keyboard import LineKeyboard
from holdfast.cli.terminal.screen import LiveScreen, PlainScreen

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

REFRESH_SECONDS = 0.5
_LOCAL_FLAGS = 3
_IDLE_HINT = "  nothing runs; Ctrl-D leaves"
Interrupt = Callable[[], bool]
"""Ends what runs; False where nothing does."""


class LineSource(Protocol):
    """Gives lines until the person leaves."""

    def open(self, interrupt: Interrupt) -> None:
        """Begin; Ctrl-C calls `interrupt` from here on."""
        ...

    async def next(self) -> str | None:
        """The next line; None when the person leaves."""
        ...

    def close(self) -> None:
        """Give the terminal back."""
        ...


class PlainLines:
    """Lines as the terminal itself edits them; nothing is drawn."""

    def __init__(self, screen: PlainScreen, keyboard: LineKeyboard) -> None:
        self._screen = screen
        self._keyboard = keyboard

    def open(self, interrupt: Interrupt) -> None:
        self._keyboard.open()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._stop, interrupt)

    async def next(self) -> str | None:
        return await self._keyboard.next()

    def close(self) -> None:
        self._keyboard.close()
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)

    def _stop(self, interrupt: Interrupt) -> None:
        if not interrupt():
            self._screen.say(_IDLE_HINT)


class EditedLines:
    """An editor at the bottom of the screen: history, several lines by Alt-Enter or a backslash, completion, a status line."""

    def __init__(
        self,
        screen: LiveScreen,
        *,
        history: Path,
        status: Callable[[], str],
        words: Callable[[], Iterable[str]],
    ) -> None:
        from prompt_toolkit import PromptSession

        self._screen = screen
        self._interrupt: Interrupt = lambda: False
        self._prompt = PromptSession[str](
            history=_history(history),
            completer=_completer(words),
            complete_while_typing=True,
            key_bindings=self._bindings(),
            bottom_toolbar=lambda: f" {status()}",
            refresh_interval=REFRESH_SECONDS,
            reserve_space_for_menu=4,
            enable_suspend=True,
        )

    def open(self, interrupt: Interrupt) -> None:
        self._interrupt = interrupt
        _keep_typed_input_on_interrupt(True)
        # While the editor steps aside for a line, Ctrl-C is a signal and no key; it means the same.
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupt)

    async def next(self) -> str | None:
        lines: list[str] = []
        while True:
            await self._screen.available.wait()
            try:
                line = await self._prompt.prompt_async("... " if lines else "> ", handle_sigint=False)
            except EOFError:
                return None
            lines.append(line.removesuffix("\\"))
            if not line.endswith("\\"):
                return "\n".join(lines)

    def close(self) -> None:
        self._interrupt = lambda: False
        _keep_typed_input_on_interrupt(False)
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)

    def _bindings(self) -> "KeyBindings":
        from prompt_toolkit.key_binding import KeyBindings

        keys = KeyBindings()

        @keys.add("c-c")
        def _stop(event: "KeyPressEvent") -> None:
            if self._interrupt():
                return
            if not event.current_buffer.text:
                self._screen.say(_IDLE_HINT, "dim")
            event.current_buffer.reset()

        @keys.add("escape", "enter")
        @keys.add("escape", "c-j")  # what the terminal makes of Alt-Enter while the editor steps aside
        def _break_line(event: "KeyPressEvent") -> None:
            event.current_buffer.insert_text("\n")

        return keys


def _keep_typed_input_on_interrupt(is_wanted: bool) -> None:
    """Whether Ctrl-C as a signal leaves alone what was typed before it; terminals throw it away unless told."""
    with suppress(termios.error):
        attributes = termios.tcgetattr(0)
        flags = attributes[_LOCAL_FLAGS]
        attributes[_LOCAL_FLAGS] = flags | termios.NOFLSH if is_wanted else flags & ~termios.NOFLSH
        termios.tcsetattr(0, termios.TCSANOW, attributes)


def _history(path: Path) -> "History":
    from prompt_toolkit.history import FileHistory

    class FilteredHistory(FileHistory):
        """What was typed, without answers: one from yesterday must not be an arrow key away from a question of today."""

        def append_string(self, string: str) -> None:
            if not string.startswith(("/approve", "/deny")):
                super().append_string(string)

    path.touch(mode=0o600, exist_ok=True)
    return FilteredHistory(str(path))


def _completer(words: Callable[[], Sequence[str] | Iterable[str]]) -> "Completer":
    from prompt_toolkit.completion import WordCompleter

    return WordCompleter(lambda: list(words()), sentence=True)
