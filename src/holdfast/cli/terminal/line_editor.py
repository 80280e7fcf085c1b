"""Line input of a chat: an editor with history and completion, or the terminal's own line input in plain mode."""

import asyncio
import os
import re
import signal
import termios
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from holdfast.cli.terminal.keyboard import LineKeyboard
from holdfast.cli.terminal.notifier import FOCUS_IN, FOCUS_OUT
from holdfast.cli.terminal.paste_guard import PAUSE_SECONDS, PasteGuard
from holdfast.cli.terminal.screen import LiveScreen, PlainScreen

if TYPE_CHECKING:
    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.completion import CompleteEvent, Completer
    from prompt_toolkit.document import Document
    from prompt_toolkit.formatted_text import StyleAndTextTuples
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

REFRESH_SECONDS = 0.5
"""How often the status line is drawn again while a turn runs."""
_MIN_REDRAW_SECONDS = 0.04
_LOCAL_FLAGS, _CONTROL_CHARACTERS = 3, 6
_CTRL_D, _DISABLED = b"\x04", b"\x00"
_MENTION = re.compile(r"(?<!\S)@(\"(?:\\\"|[^\"])*|\S*)$")
_IDLE_HINT = "  no turn is running; Ctrl-D quits"
_PASTED_HINT = "  these lines arrived together: Enter sends them as one message, Ctrl-C drops them"
Interrupt = Callable[[], bool]
"""Stops the running turn; False if none is running."""


class LineSource(Protocol):
    """A source of lines until the user leaves."""

    def open(self, interrupt: Interrupt) -> None:
        """Start reading; Ctrl-C calls `interrupt`."""
        ...

    async def next(self) -> str | None:
        """The next line; None when the user leaves."""
        ...

    async def wait_until_shown(self) -> None:
        """Wait until the user can type."""
        ...

    def close(self) -> None:
        """Restore the terminal."""
        ...


class PlainLines:
    """Lines edited by the terminal itself; nothing is drawn."""

    def __init__(self, screen: PlainScreen, keyboard: LineKeyboard) -> None:
        self._screen = screen
        self._keyboard = keyboard

    def open(self, interrupt: Interrupt) -> None:
        self._keyboard.open()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._stop, interrupt)

    async def next(self) -> str | None:
        return await self._keyboard.next()

    async def wait_until_shown(self) -> None:
        """Nothing is drawn, so there is nothing to wait for."""

    def close(self) -> None:
        self._keyboard.close()
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)

    def _stop(self, interrupt: Interrupt) -> None:
        if not interrupt():
            self._screen.say(_IDLE_HINT)


class EditedLines:
    """An editor at the bottom of the screen with history, completion, a status line and multi-line input."""

    def __init__(
        self,
        screen: LiveScreen,
        *,
        history: Path,
        status: Callable[[], str],
        words: Callable[[], Iterable[str]],
        paths: Callable[[str], Sequence[str]] = lambda _: (),
        unfold: Callable[[], None] = lambda: None,
        cycle_mode: Callable[[], None] = lambda: None,
    ) -> None:
        from prompt_toolkit import PromptSession

        self._screen = screen
        self._unfold = unfold
        self._cycle_mode = cycle_mode
        self._interrupt: Interrupt = lambda: False
        self._prompt = PromptSession[str](
            history=_history(history),
            completer=line_completer(words, paths),
            complete_while_typing=True,
            key_bindings=self._bindings(),
            bottom_toolbar=lambda: f" {status()}",
            reserve_space_for_menu=4,
            prompt_continuation=_continuation,
        )
        # Tokens arrive faster than a terminal needs to be drawn.
        self._prompt.app.min_redraw_interval = _MIN_REDRAW_SECONDS
        screen.redraw = self._prompt.app.invalidate
        self._paste = PasteGuard(time.monotonic)
        self._paste_end: asyncio.TimerHandle | None = None
        self._prompt.app.key_processor.before_key_press += lambda _: self._watch_key()
        self._shown = asyncio.Event()
        self._prompt.app.after_render += lambda _: self._note_shown()

    def open(self, interrupt: Interrupt) -> None:
        self._interrupt = interrupt
        _keep_typed_input(True)
        # While the editor is suspended to print a line, Ctrl-C arrives as a signal instead of a key.
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupt)

    async def next(self) -> str | None:
        lines: list[str] = []
        while True:
            await self._screen.available.wait()
            try:
                mark = "... " if lines else "> "
                line = await self._prompt.prompt_async(partial(self._message, mark), handle_sigint=False)
            except EOFError:
                return None
            lines.append(line.removesuffix("\\"))
            if not line.endswith("\\"):
                return "\n".join(lines)

    async def wait_until_shown(self) -> None:
        await self._shown.wait()

    def _note_shown(self) -> None:
        if not self._shown.is_set():
            self._shown.set()
            # Not before the editor reads keys: the terminal would print a report as typed text.
            self._screen.focus.report(True)

    def _watch_key(self) -> None:
        self._paste.press()
        if self._paste_end is not None:
            self._wait_for_end_of_paste()

    def _press_enter(self, buffer: "Buffer", *, has_more: bool) -> None:
        """Send the message; in a burst, break the line and see what follows."""
        if not self._paste.is_line_break(has_more=has_more):
            buffer.validate_and_handle()
            return
        buffer.insert_text("\n")
        self._paste.line_breaks += 1
        self._wait_for_end_of_paste()

    def _wait_for_end_of_paste(self) -> None:
        if self._paste_end is not None:
            self._paste_end.cancel()
        self._paste_end = asyncio.get_running_loop().call_later(PAUSE_SECONDS, self._end_paste)

    def _end_paste(self) -> None:
        self._paste_end = None
        line_breaks, buffer = self._paste.end(), self._prompt.default_buffer
        if self._prompt.app.is_done:
            return
        ends_with_break = buffer.document.char_before_cursor == "\n"
        if ends_with_break:
            buffer.delete_before_cursor()
        if ends_with_break and (line_breaks == 1 or not buffer.text.strip()):
            buffer.validate_and_handle()  # one line, typed while nothing was read
        else:
            self._screen.say(_PASTED_HINT, "dim", folds=True)

    def _message(self, mark: str) -> "StyleAndTextTuples":
        if self._prompt.app.is_done:
            # The editor leaves its last form on the screen; what is in progress continues above the next line.
            return [("", mark)]
        size = self._prompt.app.output.get_size()
        lines = self._screen.region.lines(size.columns, size.rows)
        return [*((style, f"{line}\n") for style, line in lines), ("", mark)]

    def close(self) -> None:
        self._interrupt = lambda: False
        self._screen.focus.report(False)
        _keep_typed_input(False)
        asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)

    def _stop_until_continued(self) -> None:
        # The shell would take a focus report for typed text.
        self._screen.focus.report(False)
        os.kill(0, signal.SIGTSTP)
        self._screen.focus.report(True)

    def _bindings(self) -> "KeyBindings":
        from prompt_toolkit.application import run_in_terminal
        from prompt_toolkit.enums import DEFAULT_BUFFER
        from prompt_toolkit.filters import has_completions, has_focus, is_searching
        from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
        from prompt_toolkit.key_binding import KeyBindings
        from prompt_toolkit.keys import Keys
        from prompt_toolkit.search import stop_search

        # The library has no keys for focus reports; these two are on no keyboard.
        ANSI_SEQUENCES.update({FOCUS_IN: Keys.F23, FOCUS_OUT: Keys.F24})

        keys = KeyBindings()

        @keys.add("c-c")
        def _stop(event: "KeyPressEvent") -> None:
            if is_searching():
                stop_search()
                return
            if self._interrupt():
                return
            if not event.current_buffer.text:
                self._screen.say(_IDLE_HINT, "dim")
            event.current_buffer.reset()

        @keys.add("c-o")
        def _show_folded(event: "KeyPressEvent") -> None:
            self._unfold()

        @keys.add("c-z")
        def _suspend(event: "KeyPressEvent") -> None:
            run_in_terminal(self._stop_until_continued)

        @keys.add("f23")
        @keys.add("f24")
        def _focus(event: "KeyPressEvent") -> None:
            self._screen.focus.is_reported = True
            self._screen.focus.is_focused = event.key_sequence[-1].key == Keys.F23

        @keys.add("tab", filter=has_focus(DEFAULT_BUFFER))
        def _complete(event: "KeyPressEvent") -> None:
            _press_tab(event.current_buffer)

        @keys.add("s-tab", filter=~has_completions)
        def _next_mode(event: "KeyPressEvent") -> None:
            self._cycle_mode()

        @keys.add("enter", filter=has_focus(DEFAULT_BUFFER))
        def _enter(event: "KeyPressEvent") -> None:
            waiting = {press.data for press in event.key_processor.input_queue}
            has_more = any(len(data) == 1 and (data.isprintable() or data in "\r\n\t") for data in waiting)
            self._press_enter(event.current_buffer, has_more=has_more)

        @keys.add("escape", "enter")
        @keys.add("escape", "c-j")  # what the terminal sends for Alt-Enter while the editor is suspended
        def _break_line(event: "KeyPressEvent") -> None:
            event.current_buffer.insert_text("\n")

        return keys


def _continuation(width: int, line: int, wraps: int) -> str:
    """What stands before the second and later lines of a message."""
    return "  " if wraps else "... "


def _mentioned(path: str) -> str:
    """A path as it is written after `@`: in quotes if it has spaces or quotes. Those of a folder stay open for what is in it."""
    if not re.search(r"[\s\"]", path):
        return path
    escaped = path.replace('"', '\\"')
    return f'"{escaped}' if path.endswith("/") else f'"{escaped}"'


def _press_tab(buffer: "Buffer") -> None:
    """Insert the completion if there is only one, and offer what is in it if it is a folder; else go to the next."""
    from prompt_toolkit.completion import CompleteEvent, get_common_complete_suffix

    if buffer.complete_state is not None:
        completions = buffer.complete_state.completions
    else:
        # The key before this one may have come so shortly before it that its completions are not there yet.
        event = CompleteEvent(completion_requested=True)
        completions = list(buffer.completer.get_completions(buffer.document, event))
    if len(completions) == 1:
        buffer.apply_completion(completions[0])
        if buffer.document.text_before_cursor.endswith("/"):
            buffer.start_completion()
    elif buffer.complete_state is not None:
        buffer.complete_next()
    elif common := get_common_complete_suffix(buffer.document, completions):
        buffer.insert_text(common)
    else:
        buffer.start_completion()


def _keep_typed_input(is_enabled: bool) -> None:
    """Keep what is typed while no line is edited for the next one: an interrupt does not discard it (NOFLSH), as terminals do
    by default, Ctrl-D is a key like any other (no VEOF), and nothing is echoed into what a slash command shows."""
    with suppress(termios.error):
        attributes = termios.tcgetattr(0)
        flags = attributes[_LOCAL_FLAGS]
        kept = (flags | termios.NOFLSH) & ~termios.ECHO
        attributes[_LOCAL_FLAGS] = kept if is_enabled else (flags & ~termios.NOFLSH) | termios.ECHO
        attributes[_CONTROL_CHARACTERS][termios.VEOF] = _DISABLED if is_enabled else _CTRL_D
        termios.tcsetattr(0, termios.TCSANOW, attributes)


def _history(path: Path) -> "History":
    from prompt_toolkit.history import FileHistory

    class FilteredHistory(FileHistory):
        """History without answers, so that an old approval is never one arrow key away from a new question."""

        def append_string(self, string: str) -> None:
            if not string.startswith(("/approve", "/deny")):
                super().append_string(string)

    path.touch(mode=0o600, exist_ok=True)
    return FilteredHistory(str(path))


def line_completer(
    words: Callable[[], Sequence[str] | Iterable[str]], paths: Callable[[str], Sequence[str]]
) -> "Completer":
    """Completes a command at the start of the line, and a path after `@`."""
    from prompt_toolkit.completion import Completer, Completion

    class LineCompleter(Completer):
        def get_completions(
            self, document: "Document", complete_event: "CompleteEvent"
        ) -> Iterator[Completion]:
            text = document.text_before_cursor
            if text.startswith("/"):
                yield from (Completion(word, -len(text)) for word in words() if word.startswith(text))
            elif mention := _MENTION.search(text):
                start = mention[1].removeprefix('"').replace('\\"', '"')
                yield from (
                    Completion(_mentioned(path), -len(mention[1]), display=path) for path in paths(start)
                )

    return LineCompleter()
