"""Key input at an approval question: a single deliberate key, or a slash command.

A question may appear while the user is typing, and a key that was meant for something else must never approve a call. So no key
counts in the first moments after the question appears, and no key counts that is part of a burst: it needs a pause before and
after it. A key that approves needs longer pauses than even slow typing leaves.
"""

from holdfast.cli.terminal.console import Console
from holdfast.core import Clock

SETTLE_SECONDS = 0.4
"""How long a question must be on the screen before a key counts."""
QUIET_SECONDS = 0.15
"""The pause a key needs before and after it. Typing, pasting and key repeat are all faster."""


SLOW_TYPING_SECONDS = 0.5
"""The pause that a key needs before and after it to approve: people who type slowly leave less between two keys."""
APPROVING = frozenset("ytmsw")
"""Keys that approve: once, and the lengths of a saved approval."""


class AccidentGuard:
    """Watches the keys after a question appears, and accepts one that was pressed deliberately."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._shown_at = clock.monotonic()
        self._last_press = self._shown_at
        self._candidate: str | None = None
        self._is_typing = False

    @property
    def has_keys(self) -> bool:
        """Whether a key was pressed since the question appeared."""
        return self._is_typing

    def press(self, key: str) -> None:
        """Record a key press."""
        now = self._clock.monotonic()
        is_alone = now - self._last_press >= QUIET_SECONDS
        has_settled = now - self._shown_at >= SETTLE_SECONDS
        # This key ends the pause that an earlier candidate needed.
        self._candidate = key if is_alone and has_settled else None
        if _approves(key) and self._is_typing and now - self._last_press < SLOW_TYPING_SECONDS:
            self._candidate = None
        self._is_typing, self._last_press = True, now

    def chosen(self) -> str | None:
        """The accepted key, once the pause after it is over. It is returned once."""
        if self._candidate is None:
            return None
        needed = SLOW_TYPING_SECONDS if _approves(self._candidate) else QUIET_SECONDS
        if self._clock.monotonic() - self._last_press < needed:
            return None
        key, self._candidate = self._candidate, None
        return key


def _approves(key: str) -> bool:
    """Whether a key, or a line in plain mode, approves. A line of a paste may look like one."""
    return key in APPROVING or key.startswith("/approve")


MIN_TYPING_SECONDS = 0.3
"""A command that arrives faster than this was not typed by someone who read the question."""
INTERRUPT, LEAVE, SUSPEND = "\x03", "\x04", "\x1a"
SHOW_AGAIN = "\x0c"
"""Not an answer: what was typed was ignored, so the question is to be shown again."""
_ENTER = ("\r", "\n")
_ANSWERS = tuple("yanrev1234")


class KeyInput:
    """Collects keys, and returns the deliberate answer."""

    def __init__(self, clock: Clock, console: Console, *, is_by_line: bool) -> None:
        self._clock = clock
        self._console = console
        self._is_by_line = is_by_line
        self._line = ""
        self._before = ""
        self._is_hint_shown = False
        self._is_busy_shown = False
        self._typing_started = 0.0
        self._answer: str | None = None
        self.begin()

    def begin(self) -> None:
        """Mark the moment the question appears. Nothing typed before it is an answer."""
        self._guard = AccidentGuard(self._clock)
        self._shown_at = self._last_tick = self._clock.monotonic()

    def press(self, key: str) -> None:
        """Record a key press, or a whole line in plain mode."""
        now = self._clock.monotonic()
        if key in (INTERRUPT, LEAVE, SUSPEND):
            self._answer = key
            return
        self._guard.press(key if not self._line else "")
        if now - self._shown_at < SETTLE_SECONDS:
            return
        if self._is_by_line:
            return
        if self._line or key == "/":
            self._type(key, now)
        else:
            self._hint_about_enter(key)

    def answer(self, keys: set[str]) -> str | None:
        """The answer, once it is certain; None until then. Called at every tick."""
        now, before = self._clock.monotonic(), self._last_tick
        self._last_tick = now
        if self._answer is not None:
            answer, self._answer = self._answer, None
            return answer
        if now - before >= QUIET_SECONDS:
            # The loop was delayed, so the times of the keys in between are unknown.
            if self._guard.has_keys and not self._is_busy_shown:
                self._is_busy_shown = True
                self._console.say(
                    "  this machine is busy and missed when keys were pressed; press the key again"
                )
            self.begin()
            return None
        key = self._guard.chosen()
        if key is not None and self._is_by_line and key.startswith("/"):
            return key
        return key if key in keys and not self._line else None

    def _hint_about_enter(self, key: str) -> None:
        """Explain once, to a user who presses Enter after a key, why nothing happens."""
        if key in _ENTER and self._before in _ANSWERS and not self._is_hint_shown:
            self._is_hint_shown = True
            self._console.say("  press the key alone, without Enter; nothing was done")
        self._before = key

    def _type(self, key: str, now: float) -> None:
        if not self._line:
            self._typing_started = now
        if key in _ENTER:
            line, self._line = self._line, ""
            self._console.say()
            if now - self._typing_started < MIN_TYPING_SECONDS and not line.startswith("/deny"):
                self._console.say("  ignored: that arrived too fast to have been typed; nothing was done")
                self._answer = SHOW_AGAIN
            else:
                self._answer = line
        elif key in ("\x7f", "\b"):
            self._line = self._line[:-1]
            self._console.say("\b \b", end="")
        elif key in ("\x15", "\x1b"):
            self._line = ""
            self._console.say()
        elif key.isprintable():
            self._line += key
            self._console.say(key, end="")
