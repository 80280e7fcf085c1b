"""One turn, driven by the journal: fold it, do the next thing, until the agent rests.

A fresh turn, one that a crash cut off, and one that waited for a person until tomorrow all take this road.
"""

import asyncio
import traceback
from collections.abc import Callable
from typing import Literal

from holdfast.agent.coderun import CodeRun, Ended
from holdfast.agent.compaction import compact
from holdfast.agent.conversation import Conversation
from holdfast.agent.prompt import (
    EXECUTE_CODE,
    LOOP_WARNING,
    code_offer,
    code_prompt,
    operation_name,
    tool_offers,
    tool_prompt,
)
from holdfast.agent.refusals import explained
from holdfast.core import (
    Call,
    Clock,
    Cycle,
    Error,
    Json,
    Message,
    Needs,
    Nonconverged,
    Ok,
    Outcome,
    Parked,
    Proposed,
    Returned,
    ToolCallPart,
    UserMessage,
    call_id,
    encode,
    read_outcome,
)
from holdfast.core.errors import BudgetExceeded, ContextExceeded, HoldfastError, ModelMissing, StoreError
from holdfast.core.events import Noted, RunEnded, ToolReturned, TurnEnded
from holdfast.gate import Gate
from holdfast.models import Model, OnText, Prompt
from holdfast.store import Journal

Mode = Literal["code", "tools"]
MAX_RETURN_CHARACTERS = 20_000


class Turn:
    """Carries the running turn on. What it knows is in the journal, but for the time it has worked."""

    def __init__(
        self,
        *,
        journal: Journal,
        conversation: Conversation,
        gate: Gate,
        code: CodeRun,
        model: Model | None,
        clock: Clock,
        proposals: Callable[[], tuple[str, ...]],
        mode: Mode = "code",
        max_tokens: int | None = None,
        is_compacted_when_full: bool = False,
        max_history_messages: int | None = None,
    ) -> None:
        self._journal = journal
        self._conversation = conversation
        self._gate = gate
        self._code = code
        self.model = model
        self._clock = clock
        self._proposals = proposals
        self._mode = mode
        self._max_tokens = max_tokens
        self._is_compacted_when_full = is_compacted_when_full
        self._max_history_messages = max_history_messages
        self._worked_seconds = 0.0

    async def advance(self, on_text: OnText) -> Outcome:
        """Do the next thing until the turn is over, or waits for a person (`Needs`, with an escalation open)."""
        begun = self._clock.monotonic()
        try:
            outcome = await self._within_time(on_text)
        except BudgetExceeded as error:
            outcome = Nonconverged(value=self._last_words(), reason="budget", dimension=error.dimension)
        except StoreError:
            raise  # what cannot be recorded has not happened; there is nothing to end the turn with
        except ContextExceeded as error:
            outcome = Error(
                message=f"Context window exceeded: {error}",
                code=error.code,
                hint="summarise older turns with /compact, fork an earlier turn with /fork, or start a new session",
            )
        except HoldfastError as error:
            outcome = Error(message=str(error), code=error.code, hint=error.hint)
        except Exception as error:
            # A fault of ours must not lock the person out of the session; the trace is kept for the report.
            trace = "".join(traceback.format_exception(error))[-8000:]
            await self._journal.append(Noted(code="internal", text=trace))
            outcome = Error(message=f"internal error: {error!r}", code="internal", hint="please report it")
        self._worked_seconds += self._clock.monotonic() - begun
        if not (isinstance(outcome, Needs) and self._gate.escalations.waiting()):
            spent, self._worked_seconds = round(self._worked_seconds, 6), 0.0
            await self._journal.append(
                TurnEnded(turn=self._conversation.turn, outcome=outcome, wall_seconds=spent)
            )
        return outcome

    async def _within_time(self, on_text: OnText) -> Outcome:
        """One thing after another, as long as the budget has time for it."""
        self._gate.budget.check()
        left = self._gate.budget.remaining("wall_seconds")
        limit = asyncio.timeout(None if left is None else float(left) - self._worked_seconds)
        try:
            async with limit:
                while (outcome := await self._next(on_text)) is None:
                    pass
                return outcome
        except TimeoutError:
            if not limit.expired():
                raise
            raise BudgetExceeded("the time is up", dimension="wall_seconds") from None

    async def _next(self, on_text: OnText) -> Outcome | None:
        """One thing: ask the model, carry out one of its calls, or find that the turn is over."""
        state = self._conversation
        if state.posted_code is not None:
            return await self._run_posted(state.posted_code.code)
        if state.reply is None:
            return await self._ask(on_text)
        for part in state.reply.tool_calls:
            if part.id not in state.returned:
                return await self._carry_out(part)
        if self._gate.loops.verdict == "block":
            return Cycle(value=self._last_words(), length=self._gate.loops.length)
        if state.reply.tool_calls:
            return await self._ask(on_text)
        return self._done(state.reply.text)

    async def _ask(self, on_text: OnText) -> Outcome | None:
        if self.model is None:
            raise ModelMissing("this session has no model", hint="see: holdfast doctor")
        tools = self._gate.tools()
        is_code = self._mode == "code"
        system = code_prompt(tools) if is_code else tool_prompt()
        if self._gate.loops.verdict == "warn":
            system += LOOP_WARNING
        prompt = Prompt(
            system=system,
            messages=_newest(self._conversation.messages, self._max_history_messages),
            tools=code_offer() if is_code else tool_offers(tools),
            max_tokens=self._max_tokens,
        )
        state = self._conversation
        try:
            await self._gate.consult(
                turn=state.turn, step=state.steps + 1, model=self.model, prompt=prompt, on_text=on_text
            )
        except ContextExceeded:
            if not self._is_compacted_when_full or not state.messages_through(state.turn - 1):
                raise
            await compact(
                journal=self._journal, conversation=state, gate=self._gate, model=self.model, keep_turns=1
            )
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
        answer = explained(await self._gate.submit(call))
        if isinstance(answer, Parked):
            return self._waits()
        is_error = not isinstance(answer, Returned)
        content = _shown(answer.value) if isinstance(answer, Returned) else answer.reason
        await self._journal.append(
            ToolReturned(
                turn=state.turn,
                tool_call=part.id,
                tool=part.tool,
                content=_cut(content),
                is_error=is_error,
            )
        )
        return None

    async def _run_written(self, part: ToolCallPart) -> Outcome | None:
        """Run the code that the model wrote, and tell it what came of it."""
        state = self._conversation
        source = part.arguments.get("code")
        if not isinstance(source, str):
            await self._journal.append(
                ToolReturned(
                    turn=state.turn,
                    tool_call=part.id,
                    tool=part.tool,
                    content="execute_code takes one argument: code, a string",
                    is_error=True,
                )
            )
            return None
        if state.ended is not None and state.ended_for == part.id:
            await self._journal.append(_returned(state.turn, part, state.ended))
            return None
        ended = await self._run(source, tool_call=part.id)
        if ended is None:
            return self._waits()
        await self._journal.append(ended.event, _returned(state.turn, part, ended.event), blobs=ended.blobs)
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
            return self._done(ended.value)
        return Error(message=ended.error, code=f"guest-{ended.status}")

    async def _run(self, source: str, *, tool_call: str | None) -> Ended | None:
        if self._conversation.run is not None:
            return await self._code.go_on()
        return await self._code.start(source, tool_call=tool_call, seed=self._conversation.turn)

    def _waits(self) -> Needs:
        waiting = self._gate.escalations.waiting()
        questions = [
            str(e.call.arguments.get("question", "")) for e in waiting if e.decision.rule == "ask-person"
        ]
        if questions and len(questions) == len(waiting):
            return Needs(
                need="clarification", description="\n".join(questions), context=[str(e.id) for e in waiting]
            )
        what = ", ".join(f"{e.call.operation} ({e.decision.reason})" for e in waiting)
        return Needs(
            need="approval", description=f"waits for a person: {what}", context=[str(e.id) for e in waiting]
        )

    def _done(self, value: Json) -> Outcome:
        proposals = self._proposals()
        return Proposed(value=value, proposals=proposals) if proposals else Ok(value=value)

    def _last_words(self) -> str | None:
        return self._conversation.reply.text if self._conversation.reply else None


def _returned(turn: int, part: ToolCallPart, ended: RunEnded) -> ToolReturned:
    content, is_error = told(ended)
    return ToolReturned(turn=turn, tool_call=part.id, tool=part.tool, content=content, is_error=is_error)


def told(ended: RunEnded) -> tuple[str, bool]:
    """What the model is told of a run: what it printed, the value of its last line, or the error."""
    parts = [ended.printed.rstrip()] if ended.printed.strip() else []
    if ended.status != "ok":
        parts.append(ended.error.strip())
    elif ended.value is not None:
        parts.append(f"=> {_shown(ended.value)}")
    return _cut("\n".join(parts) or "(no output)"), ended.status != "ok"


def _newest(messages: tuple[Message, ...], limit: int | None) -> tuple[Message, ...]:
    """The last messages, from a person's message on, so that no call is parted from its return."""
    if limit is None or len(messages) <= limit:
        return messages
    starts = [n for n, message in enumerate(messages) if isinstance(message, UserMessage)]
    start = next((n for n in starts if n >= len(messages) - limit), starts[-1])
    return messages[start:]


def _shown(value: Json) -> str:
    return value if isinstance(value, str) else encode(value).decode()


def _cut(text: str) -> str:
    if len(text) <= MAX_RETURN_CHARACTERS:
        return text
    head, tail = text[: MAX_RETURN_CHARACTERS * 4 // 5], text[-MAX_RETURN_CHARACTERS // 5 :]
    return f"{head}\n[... {len(text) - len(head) - len(tail):,} characters left out ...]\n{tail}"
