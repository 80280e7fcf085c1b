"""The approver at the terminal. Enter never approves; a key does, if it was pressed deliberately."""

import asyncio
import os
import shlex
import signal
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

import msgspec

from holdfast.cli.approvals.key_guard import INTERRUPT, LEAVE, SHOW_AGAIN, SUSPEND, KeyInput
from holdfast.cli.approvals.text import (
    HELP,
    choices,
    lengths,
    parse_amount,
    scope_of,
)
from holdfast.cli.approvals.view import show_choices, show_escalation
from holdfast.cli.terminal.console import Console
from holdfast.cli.terminal.keyboard import Keyboard, RawKeyboard
from holdfast.cli.terminal.progress import progress_hidden
from holdfast.core import Clock, Escalation, Json, Response, SystemClock, is_question
from holdfast.core.approval_text import SAVED_MINUTES, describe_offers
from holdfast.gate import MAX_AMOUNT
from holdfast.session import Session

TICK_SECONDS = 0.03

Commands = Callable[[str], Awaitable[None]]
ExclusiveScreen = Callable[[], AbstractAsyncContextManager[object]]


class PersonLeft(Exception):
    """The user left without an answer. The call keeps waiting."""


class TerminalApprover:
    """Shows a waiting call, and reads a key or a command such as `/deny REASON`."""

    def __init__(
        self,
        console: Console,
        *,
        session: Session | None = None,
        keyboard: Keyboard | None = None,
        commands: Commands | None = None,
        exclusive_screen: ExclusiveScreen = nullcontext,
        clock: Clock | None = None,
        notify: Callable[[str], None] | None = None,
        is_plain: bool = False,
    ) -> None:
        self._console = console
        self._session = session
        self._keyboard = keyboard or RawKeyboard()
        self._commands = commands
        self._exclusive_screen = exclusive_screen
        self._clock = clock or SystemClock()
        self._notify = notify or console.notify
        self._is_plain = is_plain

    async def __call__(self, escalation: Escalation) -> Response | None:
        async with self._exclusive_screen():
            with progress_hidden():
                return await self._ask(escalation)

    async def _ask(self, escalation: Escalation) -> Response | None:
        edited: dict[str, Json] | None = None
        is_viewed = False
        while self._is_open(escalation):
            shown = escalation if edited is None else await self._as_edited(escalation, edited)
            said = await self._read_answer(shown, is_edited=edited is not None, is_viewed=is_viewed)
            match said:
                case "y" if is_question(escalation):
                    words = await self._keyboard.line("your answer> ")
                    if words and words.strip():
                        return Response(verdict="approve", reason=words.strip())
                case "y":
                    return Response(verdict="approve", arguments=edited)
                case "a":
                    if (answer := await self._choose_offer(escalation)) is not None:
                        return answer
                case "n":
                    return Response(verdict="deny")
                case "r":
                    reason = await self._keyboard.line("reason> ")
                    if reason is not None:
                        return Response(verdict="deny", reason=reason.strip() or None)
                case "e":
                    edited = await self._edit(shown) or edited
                    is_viewed = False
                    if edited is not None and (why := await self._why_denied(escalation, edited)):
                        self._console.say(f"  the policy denies the edited call: {why}", "bad", folds=True)
                        edited = None
                case "v":
                    from holdfast.services import exact_call

                    workspace = None if self._session is None else self._session.workspace
                    for line in exact_call(shown.call, workspace):
                        self._console.say(f"    {line}")
                    is_viewed = True
                case "?":
                    for line in HELP:
                        self._console.say(f"  {line}", folds=True)
                case _ if said == SHOW_AGAIN:
                    pass
                case _ if said == SUSPEND:
                    os.kill(0, signal.SIGTSTP)  # after the return, the question is shown again
                case _ if edited is not None and said.split()[:1] == ["/approve"]:
                    if said.split() == ["/approve"]:
                        return Response(verdict="approve", arguments=edited)
                    self._console.say("  answer the edited call first: /approve alone, or a key")
                case _:
                    answer = await self._handle_command(said)
                    if answer is not None:
                        return answer
        return None

    async def _choose_offer(self, escalation: Escalation) -> Response | None:
        """Choose what a saved approval covers and how long it lasts; None goes back to the question."""
        lines = [f"{number}  {words}" for number, words in enumerate(describe_offers(escalation), 1)]
        numbers = [str(number) for number in range(1, len(lines) + 1)]

        def show_offers() -> set[str]:
            for line in lines:
                self._console.say(f"    {line}", folds=True)
            show_choices(
                self._console,
                [(f"1-{len(lines)}", "what to approve"), ("b", "back")],
                how=self._how,
                has_commands=False,
            )
            return {*numbers, "b"}

        def show_lengths() -> set[str]:
            show_choices(self._console, [*lengths(), ("b", "back")], how=self._how, has_commands=False)
            return {key for key, _ in lengths()} | {"b"}

        offer = await self._read_key(show_offers)
        if offer not in numbers:
            return None
        length = await self._read_key(show_lengths)
        if length not in {key for key, _ in lengths()}:
            return None
        scope, amount = scope_of(length), None
        if scope == "minutes":
            amount = SAVED_MINUTES
        if scope == "times":
            words = await self._keyboard.line("how many times, this one included> ")
            amount = parse_amount((words or "").strip())
            if amount is None:
                self._console.say(f"  not a number from 1 to {MAX_AMOUNT:,}; nothing was answered")
                return None
        return Response(verdict="approve", scope=scope, amount=amount, offer=int(offer))

    async def _as_edited(self, escalation: Escalation, arguments: dict[str, Json]) -> Escalation:
        """What the person will approve: the call with other arguments, judged as it would be."""
        if self._session is not None:
            return await self._session.preview_edit(escalation, arguments)
        call = msgspec.structs.replace(escalation.call, arguments=arguments)
        return msgspec.structs.replace(escalation, call=call, targets=())

    async def _why_denied(self, escalation: Escalation, arguments: dict[str, Json]) -> str:
        """Why the policy denies the edited call; empty if it does not."""
        decision = (await self._as_edited(escalation, arguments)).decision
        return f"{decision.reason} (rule {decision.rule})" if decision.verdict == "deny" else ""

    def _is_open(self, escalation: Escalation) -> bool:
        return self._session is None or escalation.id in {each.id for each in self._waiting()}

    @property
    def _how(self) -> str:
        return "type a key and Enter" if self._keyboard.is_by_line else "press a key"

    async def _read_answer(self, escalation: Escalation, *, is_edited: bool, is_viewed: bool) -> str:
        """A deliberate key, or a command line."""

        def show() -> set[str]:
            if not self._is_plain:
                self._notify("Holdfast needs your approval")
            is_whole = self._show(escalation) or is_viewed
            offered = choices(escalation, is_whole=is_whole, is_edited=is_edited)
            ids = [each.id for each in self._waiting()]
            show_choices(
                self._console,
                offered,
                how=self._how,
                has_commands=not is_question(escalation),
                number=ids.index(escalation.id) + 1 if escalation.id in ids else 1,
                waiting=len(ids),
            )
            return {key for key, _ in offered}

        return await self._read_key(show)

    def _show(self, escalation: Escalation) -> bool:
        return show_escalation(
            self._console,
            escalation,
            self._session,
            now_ms=self._clock.now_ms(),
            waiting=self._waiting(),
        )

    def _waiting(self) -> Sequence[Escalation]:
        return () if self._session is None else self._session.escalations()

    async def _read_key(self, show: Callable[[], set[str]]) -> str:
        """Show something, and wait for one of its keys or a command line."""
        keys = KeyInput(self._clock, self._console, is_by_line=self._keyboard.is_by_line)
        with self._keyboard.listening(keys.press):
            known = show()
            keys.begin()
            while True:
                await asyncio.sleep(TICK_SECONDS)
                said = keys.answer(known)
                if said == INTERRUPT:
                    raise asyncio.CancelledError  # as if the turn was cancelled from outside
                if said == LEAVE:
                    raise PersonLeft
                if said is not None:
                    return said

    async def _edit(self, escalation: Escalation) -> dict[str, Json] | None:
        before = msgspec.json.format(msgspec.json.encode(escalation.call.arguments), indent=2).decode()
        editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
        if editor and not self._keyboard.is_by_line:
            text = await _edit_in(editor, before)
        else:
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
                "  type /approve or /deny [reason], or press a key; the call waits until you do"
            )
        return response


async def _edit_in(editor: str, text: str) -> str | None:
    """The text as the person saved it in an editor; None if the editor failed. It takes no thread of the pool while it is open."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "arguments.json"
        file.write_text(text)
        try:
            opened = await asyncio.create_subprocess_exec(*shlex.split(editor), str(file))
        except (OSError, ValueError):
            return None
        return file.read_text(errors="replace") if await opened.wait() == 0 else None


def parse_answer(line: str) -> Response | None:
    """Parse `/approve` or `/deny REASON`; None for anything else."""
    word, _, rest = line.strip().partition(" ")
    if word == "/approve":
        return Response(verdict="approve")
    if word == "/deny":
        return Response(verdict="deny", reason=rest.strip() or None)
    return None
