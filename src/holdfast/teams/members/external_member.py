"""A member made of a foreign agent: our journal before and after each letter, our gate in front of each of its tools."""

import asyncio
from collections.abc import Awaitable, Callable

from holdfast.agent import outcome_of_error, traceback_note
from holdfast.core import (
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
)
from holdfast.core.errors import BudgetExceeded, HoldfastError
from holdfast.core.events import MemberAttached, MessagePosted, ModelReplied, Noted, TurnEnded
from holdfast.gate import Gate, time_limit
from holdfast.mcp import UNJUDGED_TOOLS, with_default_path
from holdfast.store import Journal
from holdfast.teams.contract import Agent, TeamMessage, TeamReply
from holdfast.teams.errors import MemberFailed
from holdfast.teams.history import HistoryTurn, PairHistory

OUR_TOOLS = "mcp__teams__"
"""How an agent names the tools of the teams' own server; who may ask whom is judged there."""


class ExternalMember:
    """A foreign agent with a record and a boundary."""

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
        self._news: list[str] = []
        self._calls = 0
        self._is_closed = False

    async def open(self) -> None:
        """Take the conversation up, or begin it; failing to is tried twice. Raises MemberFailed, MemberMissing."""
        before = self._history.bound
        try:
            bound = await self._agent.open(before.conversation if before else None)
        except MemberFailed:
            bound = await self._agent.open(before.conversation if before else None)
        if before is not None and before.conversation == bound.conversation and not bound.is_new:
            return
        is_loss = before is not None and bound.is_new and self._history.turns_since_bound > 0
        generation = self._history.generation + (1 if is_loss else 0)
        if is_loss:
            self._news.append(
                f"its memory of earlier messages is lost ({bound.reason or 'unknown reason'}); "
                f"this is generation {generation} of the conversation"
            )
        elif before is None and not bound.is_new:
            self._news.append(
                "our record of this conversation was lost; the conversation itself was found again"
            )
        await self._journal.append(
            MemberAttached(
                kind=self._agent.kind,
                conversation=bound.conversation,
                generation=generation,
                folder=self._folder,
                version=bound.version,
                reason=bound.reason,
            )
        )

    @property
    def is_alive(self) -> bool:
        return self._agent.is_alive and not self._is_closed

    async def ask(self, letter: TeamMessage) -> TeamReply:
        recorded = self._history.reply_to(letter)
        if recorded is not None:
            return recorded
        cut_off = self._history.cut_off
        if cut_off is not None:
            is_same = cut_off.message == letter.id
            settled = await self._settle(cut_off, letter if is_same else None)
            if is_same:
                return settled
        try:
            held = self._gate.budget.reserve(Amount(iterations=1, tokens=1))
        except BudgetExceeded as error:
            return TeamReply(outcome=Error(message=str(error), code=error.code, hint=error.hint))
        turn = len(self._history.turns) + 1
        posted = MessagePosted(
            turn=turn, text=letter.text, principal=letter.principal, transport="teams", message=letter.id
        )
        try:
            await self._journal.append(posted)
        finally:
            self._gate.budget.release(held)
        return await self._take_turn(turn, letter)

    async def compact(self, *, above_tokens: int) -> bool:
        if not await self._agent.compact(above_tokens=above_tokens):
            return False
        text = f"the conversation filled more than {above_tokens} tokens and was summarised"
        await self._journal.append(Noted(code="compacted", text=text))
        return True

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            await self._on_close()

    async def _settle(self, cut_off: HistoryTurn, letter: TeamMessage | None) -> TeamReply:
        """End a turn that a crash cut off: asked again where that is harmless, else left as unknown."""
        if not self._agent.capabilities.is_idempotent or not cut_off.message:
            unknown = Error(
                message="the process died during this message; whether it was answered is not known",
                code="unknown",
                hint="ask again under another id",
            )
            await self._journal.append(TurnEnded(turn=cut_off.turn, outcome=unknown))
            return TeamReply(outcome=unknown)
        again = letter or TeamMessage(
            id=cut_off.message,
            text=cut_off.text,
            sender=cut_off.principal.removeprefix("team:"),
            principal=cut_off.principal,
        )
        return await self._take_turn(cut_off.turn, again)

    async def _take_turn(self, turn: int, letter: TeamMessage) -> TeamReply:
        begun = self._clock.monotonic()
        self._calls = 0

        async def on_call(tool: str, arguments: JsonObject) -> Returned | Refused:
            return await self._judge(turn, tool, arguments)

        try:
            async with time_limit(self._gate.budget):
                reply = await self._agent.ask(letter, on_call)
        except asyncio.CancelledError:
            ended = TurnEnded(
                turn=turn, outcome=Nonconverged(reason="cancelled"), wall_seconds=self._since(begun)
            )
            await asyncio.shield(self._journal.append(ended))
            raise
        except HoldfastError as error:
            reply = TeamReply(outcome=Error(message=str(error), code=error.code, hint=error.hint))
        except Exception as error:
            # The turn has to end here, or the next letter would be told that the process died.
            await self._journal.append(traceback_note(error))
            reply = TeamReply(outcome=outcome_of_error(error, None))
        said = ModelReplied(
            turn=turn,
            step=1,
            model=self._agent.kind,
            message=ModelMessage(parts=(TextPart(text=reply.text),)),
            usage=reply.usage,
        )
        ended = TurnEnded(turn=turn, outcome=reply.outcome, wall_seconds=self._since(begun))
        if reply.text or reply.usage != Usage():
            await self._journal.append(said, ended)
        else:
            await self._journal.append(ended)
        news, self._news = tuple(self._news), []
        return TeamReply(
            outcome=reply.outcome,
            text=reply.text,
            usage=reply.usage,
            generation=self._history.generation,
            notes=(*news, *reply.notes),
        )

    async def _judge(self, turn: int, tool: str, arguments: JsonObject) -> Returned | Refused:
        """Put a call of the agent before the gate, and before a person where the policy wants one."""
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

    def _since(self, begun: float) -> float:
        return round(self._clock.monotonic() - begun, 3)


def answered(text: str, usage: Usage) -> TeamReply:
    """A turn that went well."""
    return TeamReply(outcome=Ok(value=text), text=text, usage=usage)
