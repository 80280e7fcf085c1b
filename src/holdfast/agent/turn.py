"""One turn, driven by the journal: fold it, do the next thing, until the agent rests.

A fresh turn, one that a crash cut off, and one that waited for a person until tomorrow all take this road.
"""

from collections.abc import Callable, Sequence

from holdfast.agent.code_run import CodeRun, Ended
from holdfast.agent.conversation import Conversation
from holdfast.agent.model_step import ModelStep
from holdfast.agent.prompt import EXECUTE_CODE, operation_name
from holdfast.agent.tool_replies import (
    call_left_out,
    call_returned,
    done,
    ended_by,
    explain_refusal,
    needs_approval,
    raise_if_over_budget,
    run_returned,
    tool_return,
    trace_of,
)
from holdfast.core import (
    Call,
    Clock,
    Cycle,
    Error,
    Needs,
    Outcome,
    Parked,
    ToolCallPart,
    call_id,
    read_outcome,
)
from holdfast.core.errors import EngineNotBuilt, HoldfastError, StoreError
from holdfast.core.events import Noted, TurnEnded, TurnParked
from holdfast.gate import Gate, time_limit
from holdfast.models import OnText
from holdfast.store import Journal

MAX_CALLS = 128
"""Of one reply. Whether the agent goes round in circles is only asked once a reply is carried out."""


class Turn:
    """Carries the running turn on. What it knows is in the journal, but for the time it has worked."""

    def __init__(
        self,
        *,
        journal: Journal,
        conversation: Conversation,
        gate: Gate,
        asking: ModelStep,
        code: CodeRun,
        clock: Clock,
        proposals: Callable[[], tuple[str, ...]],
    ) -> None:
        self._journal = journal
        self._conversation = conversation
        self._gate = gate
        self._asking = asking
        self._code = code
        self._clock = clock
        self._proposals = proposals
        self._begun: float | None = None

    async def advance(self, on_text: OnText) -> Outcome:
        """Do the next thing until the turn is over, or waits for a person (`Needs`, with an escalation open)."""
        try:
            while (outcome := await self._within_time(on_text)) is None:
                pass
        except StoreError:
            raise  # what cannot be recorded has not happened; there is nothing to end the turn with
        except Exception as error:
            # A fault of ours must not lock the person out of the session.
            if not isinstance(error, HoldfastError):
                await self._journal.append(trace_of(error))
            outcome = ended_by(error, self._last_words())
        if isinstance(outcome, Needs) and self._gate.escalations.waiting():
            await self.put_aside()
        else:
            spent = self.take_worked_seconds()
            await self._journal.append(
                TurnEnded(turn=self._conversation.turn, outcome=outcome, wall_seconds=spent)
            )
        return outcome

    async def put_aside(self) -> None:
        """Record how long was worked, before the turn waits for a person or the session is let go."""
        if self._begun is not None:
            spent = self.take_worked_seconds()
            await self._journal.append(TurnParked(turn=self._conversation.turn, wall_seconds=spent))

    def take_worked_seconds(self) -> float:
        """How long the turn was worked on since this was last asked; 0 where nobody works on it."""
        begun, self._begun = self._begun, None
        return 0.0 if begun is None else round(self._clock.monotonic() - begun, 6)

    async def _next(self, on_text: OnText) -> Outcome | None:
        """One thing: ask the model, carry out one of its calls, or find that the turn is over."""
        state = self._conversation
        if state.posted_code is not None:
            return await self._run_posted(state.posted_code.code)
        if state.reply is not None:
            for number, part in enumerate(state.reply.tool_calls, start=1):
                if part.id not in state.returned and number > MAX_CALLS:
                    await self._leave_out(state.reply.tool_calls)
                    break
                if part.id not in state.returned:
                    return await self._carry_out(part)
            if self._gate.loops.verdict == "block":
                return Cycle(value=self._last_words(), length=self._gate.loops.length)
            if not state.reply.tool_calls:
                return done(state.reply.text, self._proposals())
        await self._asking.ask(on_text)
        return None

    async def _within_time(self, on_text: OnText) -> Outcome | None:
        """One thing after another, as long as the budget has time for it. None where the sandbox had to be built first."""
        self._begun = self._clock.monotonic()
        self._gate.budget.check()
        try:
            async with time_limit(self._gate.budget):
                while (outcome := await self._next(on_text)) is None:
                    pass
                return outcome
        except EngineNotBuilt as unready:
            # Not the turn's own time: whoever comes next will not need it.
            await self.put_aside()
            await self._journal.append(Noted(code=unready.code, text=str(unready)))
            await unready.make_ready()
            await self._journal.append(Noted(code="engine-ready", text="the sandbox is ready"))
            return None

    async def _carry_out(self, part: ToolCallPart) -> Outcome | None:
        """Answer one tool call of the model. Outcome `Needs` when it waits for a person."""
        if part.tool == EXECUTE_CODE:
            return await self._run_written(part)
        state = self._conversation
        call = Call(
            id=call_id(state.turn, state.next_call),
            operation=operation_name(part.tool),
            arguments=part.arguments,
        )
        answer = explain_refusal(raise_if_over_budget(await self._gate.submit(call, is_followed=True)))
        if isinstance(answer, Parked):
            return self._waits()
        await self._journal.append(call_returned(state.turn, part, answer))
        return None

    async def _leave_out(self, parts: Sequence[ToolCallPart]) -> None:
        """Carry out no more than the first of these calls, and say so of each of the others."""
        state = self._conversation
        left_out = (
            call_left_out(state.turn, part, number, most=MAX_CALLS)
            for number, part in enumerate(parts, start=1)
            if part.id not in state.returned
        )
        await self._journal.append(*left_out)

    async def _run_written(self, part: ToolCallPart) -> Outcome | None:
        """Run the code that the model wrote, and tell it what came of it."""
        state = self._conversation
        source = part.arguments.get("code")
        if not isinstance(source, str):
            text = "execute_code takes one argument: code, a string"
            await self._journal.append(tool_return(state.turn, part, text, is_error=True))
            return None
        if state.ended is not None and state.ended_for == part.id:
            await self._journal.append(run_returned(state.turn, part, state.ended))
            return None
        ended = await self._run(source, tool_call=part.id)
        if ended is None:
            return self._waits()
        told = run_returned(state.turn, part, ended.event)
        await self._journal.append(ended.event, told, blobs=ended.blobs)
        return None

    async def _run_posted(self, source: str) -> Outcome | None:
        """Run the code that the host posted; its end is the turn's end."""
        if self._conversation.ended is None:
            run = await self._run(source, tool_call=None)
            if run is None:
                return self._waits()
            await self._journal.append(run.event, blobs=run.blobs)
        ended = self._conversation.ended
        assert ended is not None, "the end of the run was just recorded"
        if given := read_outcome(ended.value):
            return given  # the program said itself how it ended
        if ended.status == "ok":
            return done(ended.value, self._proposals())
        return Error(message=ended.error, code=f"guest-{ended.status}")

    async def _run(self, source: str, *, tool_call: str | None) -> Ended | None:
        if self._conversation.run is not None:
            return await self._code.go_on()
        return await self._code.start(source, tool_call=tool_call, seed=self._conversation.turn)

    def _waits(self) -> Needs | None:
        """What the turn waits for; None where that was answered before the turn could lie down, and it goes on."""
        waiting = self._gate.escalations.waiting()
        return needs_approval(waiting) if waiting else None

    def _last_words(self) -> str | None:
        return self._conversation.reply.text if self._conversation.reply else None
