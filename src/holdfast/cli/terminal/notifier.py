"""Notifications that something waits, sent while the terminal does not have the focus.

The terminal reports its focus (DEC mode 1004) and shows the notification (OSC 9, 99 or 777), or it rings the bell. A text is ours alone:
nothing that an agent or a file says reaches the terminal or the command this way.
"""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Literal

Notify = Literal["auto", "bell", "off"]

FOCUS_IN, FOCUS_OUT = "\x1b[I", "\x1b[O"
_REPORT, _DO_NOT_REPORT = "\x1b[?1004h", "\x1b[?1004l"
_BELL = "\x07"
_OSC_9_PROGRAMS = ("iTerm.app", "WezTerm", "ghostty")


class Focus:
    """Whether the terminal has the focus. A terminal that does not report it counts as focused."""

    def __init__(self) -> None:
        self.is_focused = True
        self.is_reported = False
        """Whether the terminal has reported it at all."""

    def report(self, is_wanted: bool) -> None:
        """Ask the terminal to report changes, or to stop. A question must not read a report as an answer."""
        sys.stdout.write(_REPORT if is_wanted else _DO_NOT_REPORT)
        sys.stdout.flush()


class Notifier:
    """Tells a person who looks elsewhere that something waits."""

    def __init__(
        self, focus: Focus, *, notify: Notify, command: Sequence[str], environ: Mapping[str, str]
    ) -> None:
        self._focus = focus
        self._notify = notify
        self._command = tuple(command)
        self._environ = environ
        self._running: list[subprocess.Popen[bytes]] = []

    def __call__(self, text: str) -> None:
        """Notify, unless the terminal has the focus."""
        if self._focus.is_focused or self._notify == "off":
            return
        sys.stdout.write(notification(text, self._environ) if self._notify == "auto" else _BELL)
        sys.stdout.flush()
        if self._command:
            self._run((*self._command, text))

    def notify_at_question(self, text: str) -> None:
        """Notify at a question if the terminal does not report its focus: the others were notified when the call began to wait."""
        if self._focus.is_reported or self._notify == "off":
            return
        sys.stdout.write(_BELL if self._notify == "bell" else f"{_BELL}\x1b]9;{text}{_BELL}")
        sys.stdout.flush()

    def _run(self, command: tuple[str, ...]) -> None:
        self._running = [each for each in self._running if each.poll() is None]
        quiet = subprocess.DEVNULL
        try:
            process = subprocess.Popen(  # noqa: S603 - the command is from the person's own configuration
                command,
                stdin=quiet,
                stdout=quiet,
                stderr=quiet,
                start_new_session=True,
                env=dict(self._environ),
            )
        except OSError:
            return  # the chat goes on without a notification
        self._running.append(process)


def notification(text: str, environ: Mapping[str, str]) -> str:
    """What makes this terminal show a text: OSC 99 for kitty, 9 for iTerm2 and its kin, 777 for rxvt and foot, else the bell."""
    term, program = environ.get("TERM", ""), environ.get("TERM_PROGRAM", "")
    if "TMUX" in environ or term.startswith(("tmux", "screen")):
        return _BELL  # a multiplexer passes the bell on and swallows the rest
    if "kitty" in term or "KITTY_WINDOW_ID" in environ:
        return f"\x1b]99;;{text}\x1b\\"
    if program in _OSC_9_PROGRAMS or "WT_SESSION" in environ or "ghostty" in term:
        return f"\x1b]9;{text}{_BELL}"
    if term.startswith(("rxvt", "foot")):
        return f"\x1b]777;notify;Holdfast;{text}{_BELL}"
    return _BELL
