"""Asking the person at the terminal. Enter never approves; a digit does, when it was surely meant for this question."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext

import msgspec

from holdfast.cli.approval_text import (
    can_be_undone,
    choices,
    cost_so_far,
    exact_call,
    is_question,
    response_of,
    shortened,
    standing_rule,
    what_happens,
    where_from,
    why_it_asks,
)
from holdfast.cli.console import Console
from holdfast.cli.keyboard import Keyboard, RawKeyboard
from holdfast.cli.keyguard import QUIET_SECONDS, SETTLE_SECONDS, KeyGuard
from holdfast.core import Clock, Escalation, Json, Response, SystemClock
from holdfast.session import Session

TICK_SECONDS = 0.03
MIN_TYPING_SECONDS = 0.3
"""A command that arrives faster than this was not typed by a person who read the question."""
_BELL = "\a"
_NOTIFY = "\x1b]9;Holdfast waits for your yes or no\x07"
_INTERRUPT, _LEAVE = "\x03", "\x04"

Commands = Callable[[str], Awaitable[None]]
Taken = Callable[[], AbstractAsyncContextManager[object]]


class PersonLeft(Exception):
    """The person went away and answered nothing. What waits goes on waiting."""


class TerminalApprover:
    """Shows what waits, and reads a digit, or a command such as `/deny because`."""

    def __init__(
        self,
        console: Console,
        *,
        session: Session | None = None,
        keyboard: Keyboard | None = None,
        commands: Commands | None = None,
        taken: Taken = nullcontext,
        clock: Clock | None = None,
        is_plain: bool = False,
    ) -> None:
        self._console = console
        self._session = session
        self._keyboard = keyboard or RawKeyboard()
        self._commands = commands
        self._taken = taken
        self._clock = clock or SystemClock()
        self._is_plain = is_plain

    async def __call__(self, escalation: Escalation) -> Response | None:
        async with self._taken():
            return await self._ask(escalation)

    async def _ask(self, escalation: Escalation) -> Response | None:
        edited: dict[str, Json] | None = None
        while self._still_waits(escalation):
            shown = escalation
            if edited is not None:
                shown = msgspec.structs.replace(
                    escalation, call=msgspec.structs.replace(escalation.call, arguments=edited), targets=()
                )
            said = await self._said_of(shown, is_edited=edited is not None)
            match said:
                case "1" | "2" | "3" | "4" | "5" if not is_question(escalation):
                    return response_of(said, edited)
                case "1":
                    words = await self._keyboard.line("your answer> ")
                    if words and words.strip():
                        return Response(verdict="approve", reason=words.strip())
                case "6":
                    return Response(verdict="deny")
                case "7":
                    reason = await self._keyboard.line("tell it why> ")
                    if reason is not None:
                        return Response(verdict="deny", reason=reason.strip() or None)
                case "8":
                    edited = await self._edit(shown) or edited
                case "9":
                    for line in exact_call(shown.call, self._session):
                        self._console.say(f"    {line}")
                case _:
                    answer = await self._obey(said)
                    if answer is not None:
                        return answer
        return None

    def _still_waits(self, escalation: Escalation) -> bool:
        return self._session is None or escalation.id in {each.id for each in self._session.escalations()}

    def _show(self, escalation: Escalation, *, is_edited: bool) -> list[tuple[str, str]]:
        if not self._is_plain:
            self._console.say(f"{_BELL}{_NOTIFY}", end="")
        is_whole = show_escalation(self._console, escalation, self._session)
        others = (
            [each for each in self._session.escalations() if each.id != escalation.id]
            if self._session
            else []
        )
        for other in others:
            self._console.say(f"  waits too: {what_happens(other)}")
        offered = choices(escalation, is_whole=is_whole, is_edited=is_edited)
        standing = [digit for digit, _ in offered if digit in "2345"]
        if standing:
            rule = standing_rule(escalation, now_ms=self._clock.now_ms())
            self._console.say(f"  a standing yes ({standing[0]} to {standing[-1]}) covers: {rule}")
        for digit, words in offered:
            self._console.say(f"    {digit}  {words}")
        how = "type a digit and Enter" if self._keyboard.is_by_line else "press a digit"
        self._console.say(f"  {how}; Enter alone does nothing", "ask")
        return offered

    async def _said_of(self, escalation: Escalation, *, is_edited: bool) -> str:
        """A digit that was surely meant, or a command line."""
        attention = _Attention(self._clock, self._console, is_by_line=self._keyboard.is_by_line)
        with self._keyboard.listening(attention.press):
            digits = {digit for digit, _ in self._show(escalation, is_edited=is_edited)}
            attention.begin()
            while True:
                await asyncio.sleep(TICK_SECONDS)
                said = attention.said(digits)
                if said == _INTERRUPT:
                    raise asyncio.CancelledError  # as if the turn had been cancelled from outside
                if said == _LEAVE:
                    raise PersonLeft
                if said is not None:
                    return said

    async def _edit(self, escalation: Escalation) -> dict[str, Json] | None:
        before = msgspec.json.encode(escalation.call.arguments).decode()
        text = await self._keyboard.line("arguments> ", before)
        if text is None or not text.strip() or text.strip() == before:
            self._console.say("  nothing was changed")
            return None
        try:
            return msgspec.json.decode(text, type=dict[str, Json])
        except msgspec.DecodeError as error:
            self._console.say(f"  that is no JSON object: {error}", "bad")
            return None

    async def _obey(self, line: str) -> Response | None:
        if self._commands is not None:
            await self._commands(line)
            return None
        response = parse_answer(line)
        if response is None:
            self._console.say(
                "  say /approve or /deny [reason], or press a digit; nothing happens until you do"
            )
        return response


class _Attention:
    """What was typed since the question appeared: one key that counts, or a command that begins with a slash."""

    def __init__(self, clock: Clock, console: Console, *, is_by_line: bool) -> None:
        self._clock = clock
        self._console = console
        self._is_by_line = is_by_line
        self._line = ""
        self._began = 0.0
        self._said: str | None = None
        self.begin()

    def begin(self) -> None:
        """The question appears at this moment: nothing that was typed before it is an answer."""
        self._guard = KeyGuard(self._clock)
        self._appeared = self._ticked = self._clock.monotonic()

    def press(self, key: str) -> None:
        """A key came in, or a whole line in plain mode."""
        now = self._clock.monotonic()
        if key in (_INTERRUPT, _LEAVE):
            self._said = key
            return
        self._guard.press(key if not self._line else "")
        if now - self._appeared < SETTLE_SECONDS:
            return
        if self._is_by_line:
            if key.startswith("/"):
                self._said = key
        elif self._line or key == "/":
            self._type(key, now)

    def said(self, digits: set[str]) -> str | None:
        """What the person said, once it is sure; asked again every tick."""
        now, before = self._clock.monotonic(), self._ticked
        self._ticked = now
        if self._said is not None:
            said, self._said = self._said, None
            return said
        if now - before >= QUIET_SECONDS:
            # We were held up, so nobody knows when the keys that came meanwhile were pressed.
            self.begin()
            return None
        key = self._guard.chosen()
        return key if key in digits and not self._line else None

    def _type(self, key: str, now: float) -> None:
        if not self._line:
            self._began = now
        if key in ("\r", "\n"):
            line, self._line = self._line, ""
            self._console.say()
            if now - self._began < MIN_TYPING_SECONDS and not line.startswith("/deny"):
                self._console.say("  that came too fast to have been typed; nothing was done")
            else:
                self._said = line
        elif key in ("\x7f", "\b"):
            self._line = self._line[:-1]
            self._console.say("\b \b", end="")
        elif key in ("\x15", "\x1b"):
            self._line = ""
            self._console.say()
        elif key.isprintable():
            self._line += key
            self._console.say(key, end="")


def show_escalation(console: Console, escalation: Escalation, session: Session | None = None) -> bool:
    """What will happen, the exact call, and why it asks; returns whether all of it could be shown."""
    lines, is_whole = shortened(exact_call(escalation.call, session))
    console.say()
    console.say(f"  {what_happens(escalation)}", "ask")
    for line in lines:
        console.say(f"    {line}")
    if is_question(escalation):
        return is_whole
    console.say(f"  why it asks:   {why_it_asks(escalation)}")
    console.say(f"  values from:   {where_from(escalation)}")
    console.say(f"  can be undone: {can_be_undone(escalation)}")
    if session is not None:
        console.say(f"  spent so far:  {cost_so_far(session)}")
    return is_whole


def parse_answer(line: str) -> Response | None:
    """A person's words as an answer; None for anything that is neither a yes nor a no."""
    word, _, rest = line.strip().partition(" ")
    if word == "/approve":
        return Response(verdict="approve")
    if word == "/deny":
        return Response(verdict="deny", reason=rest.strip() or None)
    return None
