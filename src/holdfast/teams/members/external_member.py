"""A member that wraps an external agent: journals every message and reply, and puts our gate before each of its tools."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import assert_never
from uuid import uuid4

import msgspec

from holdfast.agent import outcome_of_error, traceback_note
from holdfast.core import (
    AGENT,
    Amount,
    Call,
    Clock,
    Error,
    Failed,
    JsonObject,
    ModelMessage,
    Nonconverged,
    Ok,
    Parked,
    Refused,
    Returned,
    TextPart,
    Tool,
    Usage,
    call_id,
    is_success,
)
from holdfast.core.errors import BudgetExceeded, HoldfastError
from holdfast.core.events import (
    HistoryCompacted,
    MemberAttached,
    MessagePosted,
    ModelReplied,
    Noted,
    TurnEnded,
)
from holdfast.gate import Gate, time_limit
from holdfast.mcp import UNJUDGED_TOOLS, with_default_path
from holdfast.store import Journal
from holdfast.teams.contract import Agent, TeamMessage, TeamReply
from holdfast.teams.errors import MemberFailed
from holdfast.teams.history import HistoryTurn, PairHistory

OUR_TOOLS = "mcp__teams__"
"""The prefix of the teams server's tools in an agent. The server itself decides who may ask whom."""

_MAX_SUMMARY = 20_000
_SUMMARISE = (
    "This conversation is near its limit and continues in a new one, which knows only what you write now. Summarise it: what was "
    "asked and answered, what you found out, what you changed, what is still open, and names, paths and numbers that matter. "
    "Use no tools. Answer with the summary alone."
)


class ExternalMember:
    """An external agent with our journal and our gate."""

    def __init__(
        self,
        *,
        journal: Journal,
        gate: Gate,
        agent: Agent,
        clock: Clock,
        folder: str,
        on_close: Callable[[], Awaitable[None]],
    ) -> None:
        self._journal = journal
        self._gate = gate
        self._agent = agent
        self._clock = clock
        self._folder = folder
        self._on_close = on_close
        self._history = PairHistory(journal)
        self._pending_notes: list[str] = []
        self._briefing = ""
        """What the agent receives with its next message, until a message is answered."""
        self._calls = 0
        self._is_closed = False

    async def open(self) -> None:
        """Resume or create the conversation, with one retry. Raises MemberFailed, MemberMissing."""
        before = self._history.attached
        try:
            attached = await self._agent.open(before.conversation if before else None)
        except MemberFailed:
            attached = await self._agent.open(before.conversation if before else None)
        if attached.is_new or self._history.answers_since_attached == 0:
            self._briefing = self._history.briefing()
        if before is not None and before.conversation == attached.conversation and not attached.is_new:
            return
        is_loss = before is not None and attached.is_new and self._history.turns_since_attached > 0
        generation = self._history.generation + (1 if is_loss else 0)
        if is_loss:
            self._pending_notes.append(
                f"its memory of earlier messages is lost ({attached.reason or 'unknown reason'}); it was briefed from "
                f"our record, and this is generation {generation} of the conversation"
            )
        elif before is None and not attached.is_new:
            self._pending_notes.append(
                "our record of this conversation was lost; the conversation itself was found again"
            )
        await self._journal.append(
            MemberAttached(
                kind=self._agent.kind,
                conversation=attached.conversation,
                generation=generation,
                folder=self._folder,
                version=attached.version,
                reason=attached.reason,
            )
        )

    @property
    def is_alive(self) -> bool:
        return self._agent.is_alive and not self._is_closed

    async def ask(self, message: TeamMessage) -> TeamReply:
        recorded = self._history.reply_to(message)
        if recorded is not None:
            return recorded
        interrupted = self._history.interrupted
        if interrupted is not None:
            is_same = interrupted.message_id == message.id
            settled = await self._end_interrupted(interrupted, message if is_same else None)
            if is_same:
                return settled
        try:
            held = await self._gate.budget.reserve(Amount(iterations=1, tokens=1))
        except BudgetExceeded as error:
            return TeamReply(outcome=Error(message=str(error), code=error.code, hint=error.hint))
        turn = len(self._history.turns) + 1
        posted = MessagePosted(
            turn=turn, text=message.text, principal=message.principal, transport="teams", message=message.id
        )
        try:
            await self._journal.append(posted)
        finally:
            self._gate.budget.release(held)
        return await self._run_turn(turn, message)

    async def compact(self, *, above_tokens: int) -> bool:
        result = await self._agent.compact(
            above_tokens=above_tokens, estimated_tokens=self._history.estimated_tokens
        )
        match result:
            case "unneeded":
                return False
            case "done":
                text = f"the conversation used more than {above_tokens} tokens and was summarised"
                await self._journal.append(Noted(code="compacted", text=text))
            case "unable":
                await self._start_over(above_tokens)
            case _:
                assert_never(result)
        return True

    async def _start_over(self, above_tokens: int) -> None:
        """Have the conversation summarised and continue in a new one. The old one is archived, not deleted."""
        summary, usage = "", Usage()
        try:
            reply = await self._agent.ask(
                TeamMessage(id=str(uuid4()), text=_SUMMARISE, sender="", principal=AGENT), _without_tools
            )
        except HoldfastError:
            pass  # the summary is then made of our record
        else:
            summary, usage = reply.text if is_success(reply.outcome) else "", reply.usage
        summary = summary[:_MAX_SUMMARY] or self._history.briefing()
        archived = self._history.attached.conversation if self._history.attached is not None else ""
        attached = await self._agent.start_over()
        turns = self._history.turns
        await self._journal.append(
            HistoryCompacted(through=turns[-1].turn if turns else 0, summary=summary, usage=usage),
            MemberAttached(
                kind=self._agent.kind,
                conversation=attached.conversation,
                generation=self._history.generation,
                folder=self._folder,
                version=attached.version,
                reason=f"the conversation {archived} used more than {above_tokens} tokens; it was summarised and archived",
            ),
        )
        self._briefing = self._history.briefing()

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            await self._on_close()

    async def _end_interrupted(self, interrupted: HistoryTurn, message: TeamMessage | None) -> TeamReply:
        """End a turn that a crash interrupted: repeat it if that is harmless, or record its outcome as unknown."""
        if not self._agent.capabilities.is_idempotent or not interrupted.message_id:
            unknown = Error(
                message="the process died during this message; whether it was answered is not known",
                code="unknown",
                hint="ask again under another id",
            )
            await self._journal.append(TurnEnded(turn=interrupted.turn, outcome=unknown))
            return TeamReply(outcome=unknown)
        again = message or TeamMessage(
            id=interrupted.message_id,
            text=interrupted.text,
            sender=interrupted.principal.removeprefix("team:"),
            principal=interrupted.principal,
        )
        return await self._run_turn(interrupted.turn, again)

    async def _run_turn(self, turn: int, message: TeamMessage) -> TeamReply:
        started = self._clock.monotonic()
        self._calls = 0
        message = msgspec.structs.replace(message, briefing=self._briefing)

        async def on_call(tool: str, arguments: JsonObject) -> Returned | Refused:
            return await self._judge(turn, tool, arguments)

        try:
            async with time_limit(self._gate.budget):
                reply = await self._agent.ask(message, on_call)
        except asyncio.CancelledError:
            ended = TurnEnded(
                turn=turn, outcome=Nonconverged(reason="cancelled"), wall_seconds=self._since(started)
            )
            await asyncio.shield(self._journal.append(ended))
            raise
        except HoldfastError as error:
            reply = TeamReply(outcome=Error(message=str(error), code=error.code, hint=error.hint))
        except Exception as error:
            # The turn must end here, or the next message would report that the process died.
            await self._journal.append(traceback_note(error))
            reply = TeamReply(outcome=outcome_of_error(error, None))
        replied = ModelReplied(
            turn=turn,
            step=1,
            model=self._agent.kind,
            message=ModelMessage(parts=(TextPart(text=reply.text),)),
            usage=reply.usage,
        )
        ended = TurnEnded(turn=turn, outcome=reply.outcome, wall_seconds=self._since(started))
        if reply.text or reply.usage != Usage():
            await self._journal.append(replied, ended)
        else:
            await self._journal.append(ended)
        if is_success(reply.outcome):
            self._briefing = ""
        notes, self._pending_notes = tuple(self._pending_notes), []
        return TeamReply(
            outcome=reply.outcome,
            text=reply.text,
            usage=reply.usage,
            generation=self._history.generation,
            notes=(*notes, *reply.notes),
        )

    async def _judge(self, turn: int, tool: str, arguments: JsonObject) -> Returned | Refused:
        """Submit a call of the agent to the gate, and wait for a person if the policy asks for one."""
        if tool in UNJUDGED_TOOLS or tool.startswith(OUR_TOOLS):
            return Returned()
        self._calls += 1
        operation = f"{self._agent.kind}.{tool}"
        known: Tool | None = self._gate.tool(operation)
        call = Call(
            id=call_id(turn, self._calls),
            operation=operation,
            arguments=with_default_path(known, arguments, self._folder),
        )
        answer = await self._gate.submit(call)
        while isinstance(answer, Parked):
            await self._gate.wait(answer.escalation)
            answer = await self._gate.submit(call)
        if isinstance(answer, Failed):
            return Refused(reason=answer.reason, rule=answer.error)
        return answer

    def _since(self, started: float) -> float:
        return round(self._clock.monotonic() - started, 3)


async def _without_tools(_tool: str, _arguments: JsonObject) -> Returned | Refused:
    return Refused(reason="a summary needs no tools", rule="teams")


def ok_reply(text: str, usage: Usage) -> TeamReply:
    """The reply of a successful turn."""
    return TeamReply(outcome=Ok(value=text), text=text, usage=usage)
