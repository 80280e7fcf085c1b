"""The approver at the terminal. Enter never approves; a digit does, if it was pressed deliberately."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext

import msgspec

from holdfast.cli.approvals.key_guard import INTERRUPT, LEAVE, SUSPEND, KeyInput
from holdfast.cli.approvals.text import choices, exact_call, parse_amount, response_for_digit
from holdfast.cli.approvals.view import show_choices, show_escalation, show_waiting
from holdfast.cli.terminal.console import Console
from holdfast.cli.terminal.keyboard import Keyboard, RawKeyboard
from holdfast.cli.terminal.progress import progress_hidden
from holdfast.core import Clock, Escalation, Json, Response, SystemClock, is_question
from holdfast.gate import MAX_AMOUNT
from holdfast.session import Session

TICK_SECONDS = 0.03

Commands = Callable[[str], Awaitable[None]]
ExclusiveScreen = Callable[[], AbstractAsyncContextManager[object]]


class PersonLeft(Exception):
    """The user left without an answer. The call keeps waiting."""


class TerminalApprover:
    """Shows a waiting call, and reads a digit or a command such as `/deny REASON`."""

    def __init__(
        self,
        console: Console,
        *,
        session: Session | None = None,
        keyboard: Keyboard | None = None,
        commands: Commands | None = None,
        exclusive_screen: ExclusiveScreen = nullcontext,
        clock: Clock | None = None,
        is_plain: bool = False,
    ) -> None:
        self._console = console
        self._session = session
        self._keyboard = keyboard or RawKeyboard()
        self._commands = commands
        self._exclusive_screen = exclusive_screen
        self._clock = clock or SystemClock()
        self._is_plain = is_plain

    async def __call__(self, escalation: Escalation) -> Response | None:
        async with self._exclusive_screen():
            with progress_hidden():
                return await self._ask(escalation)

    async def _ask(self, escalation: Escalation) -> Response | None:
        edited: dict[str, Json] | None = None
        while self._is_open(escalation):
            shown = escalation
            if edited is not None:
                shown = msgspec.structs.replace(
                    escalation, call=msgspec.structs.replace(escalation.call, arguments=edited), targets=()
                )
            said = await self._read_answer(shown, is_edited=edited is not None)
            match said:
                case "1" | "2" | "3" | "4" | "5" if not is_question(escalation):
                    return response_for_digit(said, edited)
                case "0":
                    words = await self._keyboard.line("how many times, this one included> ")
                    if (amount := parse_amount((words or "").strip())) is not None:
                        return Response(verdict="approve", scope="times", amount=amount)
                    self._console.say(f"  not a number from 1 to {MAX_AMOUNT:,}; nothing was answered")
                case "1":
                    words = await self._keyboard.line("your answer> ")
                    if words and words.strip():
                        return Response(verdict="approve", reason=words.strip())
                case "6":
                    return Response(verdict="deny")
                case "7":
                    reason = await self._keyboard.line("reason> ")
                    if reason is not None:
                        return Response(verdict="deny", reason=reason.strip() or None)
                case "8":
                    edited = await self._edit(shown) or edited
                case "9":
                    for line in exact_call(shown.call, self._session):
                        self._console.say(f"    {line}")
                case _ if said == SUSPEND:
                    os.kill(0, signal.SIGTSTP)  # after the return, the question is shown again
                case _ if edited is not None and said.split()[:1] == ["/approve"]:
                    if said.split() == ["/approve"]:
                        return response_for_digit("1", edited)
                    self._console.say("  answer the edited call first: /approve alone, or a digit")
                case _:
                    answer = await self._handle_command(said)
                    if answer is not None:
                        return answer
        return None

    def _is_open(self, escalation: Escalation) -> bool:
        return self._session is None or escalation.id in {each.id for each in self._session.escalations()}

    def _show(self, escalation: Escalation, *, is_edited: bool) -> set[str]:
        """Show the question; returns the digits that may be chosen."""
        if not self._is_plain:
            self._console.notify("Holdfast needs your approval")
        if self._session is not None:
            show_waiting(self._console, self._session.escalations(), escalation)
        is_whole = show_escalation(self._console, escalation, self._session)
        offered = choices(escalation, is_whole=is_whole, is_edited=is_edited)
        how = "type a digit and Enter" if self._keyboard.is_by_line else "press a digit"
        show_choices(self._console, escalation, offered, how=how)
        return {digit for digit, _ in offered}

    async def _read_answer(self, escalation: Escalation, *, is_edited: bool) -> str:
        """A deliberate digit, or a command line."""
        keys = KeyInput(self._clock, self._console, is_by_line=self._keyboard.is_by_line)
        with self._keyboard.listening(keys.press):
            digits = self._show(escalation, is_edited=is_edited)
            keys.begin()
            while True:
                await asyncio.sleep(TICK_SECONDS)
                said = keys.answer(digits)
                if said == INTERRUPT:
                    raise asyncio.CancelledError  # as if the turn was cancelled from outside
                if said == LEAVE:
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
            self._console.say(f"  not a JSON object: {error}", "bad")
            return None

    async def _handle_command(self, line: str) -> Response | None:
        if self._commands is not None:
            await self._commands(line)
            return None
        response = parse_answer(line)
        if response is None:
            self._console.say(
                "  type /approve or /deny [reason], or press a digit; the call waits until you do"
            )
        return response


def parse_answer(line: str) -> Response | None:
    """Parse `/approve` or `/deny REASON`; None for anything else."""
    word, _, rest = line.strip().partition(" ")
    if word == "/approve":
        return Response(verdict="approve")
    if word == "/deny":
        return Response(verdict="deny", reason=rest.strip() or None)
    return None
