"""One turn, driven by the journal: project it, do the next step, until the agent is done or waits.

A new turn, one that a crash interrupted and one that waited for approval overnight all take this path.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import assert_never

from holdfast.agent.code_run import CodeRun
from holdfast.agent.conversation import SHELL, Conversation
from holdfast.agent.folder_instructions import FolderInstructions
from holdfast.agent.hidden_output import (
    FilledPieces,
    HiddenOutputs,
    fill_arguments,
    fill_handles,
    words_of,
)
from holdfast.agent.model_step import ModelStep
from holdfast.agent.prompt import EXECUTE_CODE, RUN_COMMAND, operation_name
from holdfast.agent.tool_replies import (
    call_returned,
    call_skipped,
    explain_refusal,
    hidden_call_returned,
    needs_approval,
    outcome_of_error,
    raise_if_over_budget,
    run_returned,
    run_text,
    shortened,
    success_outcome,
    tool_return,
    traceback_note,
)
from holdfast.commands import MAX_TIMEOUT_SECONDS
from holdfast.core import (
    PERSON,
    UNKNOWN,
    Call,
    CallOrigins,
    Clock,
    Cycle,
    Error,
    Failed,
    Json,
    Level,
    Needs,
    Origin,
    Origins,
    Outcome,
    Parked,
    Principal,
    Refused,
    Returned,
    ToolCallPart,
    call_id,
    is_success,
    reaches,
    read_outcome,
)
from holdfast.core.errors import EngineNotBuilt, HoldfastError, InvalidInput, StoreError
from holdfast.core.events import CodePosted, Noted, OutputRevealed, TurnEnded, TurnParked
from holdfast.gate import Gate, time_limit
from holdfast.models import OnPiece
from holdfast.store import Journal

MAX_CALLS = 128
"""Maximum number of calls of one reply. The loop detector is consulted only after a reply is executed."""


class Turn:
    """Advances the running turn. Its state is in the journal, except for the time it has worked."""

    def __init__(
        self,
        *,
        journal: Journal,
        conversation: Conversation,
        gate: Gate,
        model_step: ModelStep,
        code: CodeRun,
        clock: Clock,
        proposals: Callable[[], tuple[str, ...]],
        folders: FolderInstructions,
    ) -> None:
        self._journal = journal
        self._conversation = conversation
        self._gate = gate
        self._model_step = model_step
        self._code = code
        self._clock = clock
        self._proposals = proposals
        self._folders = folders
        self._hidden = HiddenOutputs(journal)
        self._started: float | None = None
        self._should_rest = False
        self._is_resting = asyncio.Event()

    async def advance(self, on_piece: OnPiece) -> Outcome:
        """Take steps until the turn ends or waits for a person (`Needs`, with an escalation open)."""
        try:
            while (outcome := await self._run_within_time_limit(on_piece)) is None:
                pass
        except StoreError:
            raise  # without a journal there is no way to end the turn
        except Exception as error:
            # A bug of ours must not lock the person out of the session.
            if not isinstance(error, HoldfastError):
                await self._journal.append(traceback_note(error))
            outcome = outcome_of_error(error, self._last_text())
        if isinstance(outcome, Needs) and self._gate.escalations.waiting():
            await self.park()
        else:
            spent = self.take_worked_seconds()
            await self._journal.append(
                TurnEnded(turn=self._conversation.turn, outcome=outcome, wall_seconds=spent)
            )
        return outcome

    @property
    def instruction_files(self) -> tuple[str, ...]:
        """The instructions of folders that the model has."""
        return tuple(self._folders.files)

    def language_of(self, language: str | None) -> str:
        """The language that posted code runs as; by default the session's own. Raises InvalidInput."""
        if language != SHELL:
            return self._code.language_of(language)
        if self._gate.tool(RUN_COMMAND) is None:
            raise InvalidInput(
                "this session cannot run programs: no command sandbox is enabled here, or its policy denies shell.run",
                hint="see which with: holdfast doctor, or choose another policy with -p",
            )
        return SHELL

    def hidden_outputs(self) -> dict[str, Level]:
        """The outputs that the model knows by name only, each with the level of its words."""
        return dict(self._hidden.levels)

    async def revealed(self, output: str, *, principal: Principal, transport: str) -> OutputRevealed:
        """The event that lets the model read a hidden output. Raises InvalidInput if there is no such output."""
        name = output.strip("{}")
        level = self._hidden.levels.get(name)
        if level is None:
            known = ", ".join(self._hidden.levels) or "none"
            raise InvalidInput(
                f"there is no hidden output {name[:40]!r}", hint=f"these are hidden: {known[:200]}"
            )
        words = (await self._hidden_words())[f"{{{{{name}}}}}"]
        return OutputRevealed(
            turn=self._conversation.turn,
            output=name,
            content=shortened(words),
            level=level,
            principal=principal,
            transport=transport,
        )

    async def rest(self) -> None:
        """Return when the step that runs is over, or a program is about to make its next call.

        The turn does nothing else then; whoever called this releases the session.
        """
        self._should_rest = True
        self._code.rest(self._is_resting)
        await self._is_resting.wait()

    async def park(self) -> None:
        """Record the time worked, before the turn waits for a person or the session is released."""
        if self._started is not None:
            spent = self.take_worked_seconds()
            await self._journal.append(TurnParked(turn=self._conversation.turn, wall_seconds=spent))

    def take_worked_seconds(self) -> float:
        """Seconds worked since this was last called; 0 if the turn is not being worked on."""
        started, self._started = self._started, None
        return 0.0 if started is None else round(self._clock.monotonic() - started, 6)

    async def _step(self, on_piece: OnPiece) -> Outcome | None:
        """Take one step: ask the model, execute one of its calls, or find that the turn is over."""
        if self._should_rest:
            self._is_resting.set()
            await asyncio.Event().wait()  # until this task is cancelled
        state = self._conversation
        if state.posted_code is not None and state.posted_code.language == SHELL:
            return await self._run_host_command(state.posted_code)
        if state.posted_code is not None:
            return await self._run_host_code(state.posted_code)
        if state.reply is not None:
            for number, part in enumerate(state.reply.tool_calls, start=1):
                if part.id not in state.returned and number > MAX_CALLS:
                    await self._skip_calls(state.reply.tool_calls)
                    break
                if part.id not in state.returned:
                    run = self._run_model_code if part.tool == EXECUTE_CODE else self._make_call
                    return await run(part)
            if self._gate.loop_detector.level == "block":
                return Cycle(value=self._last_text(), length=self._gate.loop_detector.length)
            if not state.reply.tool_calls:
                answer = fill_handles(state.reply.text, await self._hidden_words())
                return success_outcome(answer, self._staged_by_turn())
        if unread := self._folders.unread(state.turn, self._gate.origins.instructions_level):
            await self._journal.append(*unread)
        if words := await self._hidden_words():
            filled = FilledPieces(on_piece, words)
            await self._model_step.ask(filled)
            filled.flush()
        else:
            await self._model_step.ask(on_piece)
        return None

    async def _run_within_time_limit(self, on_piece: OnPiece) -> Outcome | None:
        """Take steps while the budget has time. None if the sandbox had to be built first."""
        self._started = self._clock.monotonic()
        await self._gate.budget.check()
        try:
            async with time_limit(self._gate.budget):
                while (outcome := await self._step(on_piece)) is None:
                    pass
                return outcome
        except EngineNotBuilt as not_built:
            # Building the sandbox is not charged to the turn: later turns do not need it.
            await self.park()
            await self._journal.append(Noted(code=not_built.code, text=str(not_built)))
            await not_built.make_ready()
            await self._journal.append(Noted(code="engine-ready", text="the sandbox is ready"))
            return None

    async def _make_call(self, part: ToolCallPart) -> Outcome | None:
        """Make one tool call of the model. The outcome is `Needs` if it waits for a person."""
        state = self._conversation
        call = Call(
            id=call_id(state.turn, state.next_call),
            operation=operation_name(part.tool),
            arguments=fill_arguments(part.arguments, await self._hidden_words()),
        )
        author = self._gate.author_level()
        origins, named_level = None, None
        if author is not None:
            named = {name: self._named_origins(value, author) for name, value in part.arguments.items()}
            origins = _written_by(author, call, named)
            named_level = self._gate.level_of(frozenset[Origin]().union(*named.values()), author=author)
        answer = explain_refusal(
            raise_if_over_budget(await self._gate.submit(call, can_defer_outcome=True, origins=origins))
        )
        if isinstance(answer, Parked):
            return self._waiting_outcome()
        # An answer can repeat the words that the arguments named; else a refusal is in our own words.
        level = self._gate.hidden_level(call.operation, given=named_level)
        if level is None or (isinstance(answer, Refused) and not self._gate.hides(named_level)):
            returned = call_returned(state.turn, part, answer)
        else:
            returned = hidden_call_returned(state.turn, part, call.id, answer, level)
        await self._journal.append(returned)
        return None

    async def _skip_calls(self, parts: Sequence[ToolCallPart]) -> None:
        """Return an explanation for each call beyond the maximum of one reply."""
        state = self._conversation
        skipped = (
            call_skipped(state.turn, part, number, max_calls=MAX_CALLS)
            for number, part in enumerate(parts, start=1)
            if part.id not in state.returned
        )
        await self._journal.append(*skipped)

    async def _run_model_code(self, part: ToolCallPart) -> Outcome | None:
        """Run the code that the model wrote and return the result to it."""
        state = self._conversation
        source = part.arguments.get("code")
        if not isinstance(source, str):
            text = "execute_code takes one argument: code, a string"
            await self._journal.append(tool_return(state.turn, part, text, is_error=True))
            return None
        if state.finished_run is not None and state.finished_for == part.id:
            await self._journal.append(run_returned(state.turn, part, state.finished_run))
            return None
        ended = await self._code.run(source, tool_call=part.id, seed=state.turn)
        if ended is None:
            return self._waiting_outcome()
        returned = run_returned(state.turn, part, ended.event)
        await self._journal.append(ended.event, returned, blobs=ended.blobs)
        return None

    async def _run_host_code(self, posted: CodePosted) -> Outcome | None:
        """Run the code that the host posted; its end is the turn's end."""
        if self._conversation.finished_run is None:
            run = await self._code.run(
                posted.code,
                tool_call=None,
                seed=self._conversation.turn,
                language=posted.language,
                timeout_seconds=posted.timeout_seconds,
            )
            if run is None:
                return self._waiting_outcome()
            await self._journal.append(run.event, blobs=run.blobs)
        ended = self._conversation.finished_run
        assert ended is not None, "the end of the run was just recorded"
        staged = self._staged_by_turn()
        if given := read_outcome(ended.value):  # the program returned its own outcome
            return success_outcome(given.value, staged) if staged and is_success(given) else given
        if ended.status == "ok":
            return success_outcome(ended.value, staged)
        return Error(message=ended.error, code=f"guest-{ended.status}")

    async def _run_host_command(self, posted: CodePosted) -> Outcome | None:
        """Run the command that a person typed; its end is the turn's end."""
        call = Call(
            id=call_id(posted.turn, 1),
            operation=RUN_COMMAND,
            arguments={"script": posted.code, "timeout_s": posted.timeout_seconds or MAX_TIMEOUT_SECONDS},
        )
        author: Level = "own" if posted.principal == PERSON else "stranger"
        origins = _written_by(author, call) if self._gate.asks_levels else None
        answer = explain_refusal(raise_if_over_budget(await self._gate.submit(call, origins=origins)))
        match answer:
            case Parked():
                return self._waiting_outcome()
            case Returned():
                return success_outcome(answer.value, self._staged_by_turn())
            case Refused():
                return Error(message=answer.reason, code="command-refused")
            case Failed():
                is_cut = answer.error in ("timeout", "cancelled", "unknown")
                return Error(message=answer.reason, code="command-interrupted" if is_cut else "command")
            case _:
                assert_never(answer)

    def _named_origins(self, value: Json, author: Level) -> Origins:
        """Where the words that an argument names come from."""
        found: set[Origin] = set()
        for origin, level in self._hidden.named_in(value):
            found.add(origin)
            usual = self._gate.level_of(frozenset({origin}), author=author)
            if usual is not None and not reaches(level, usual):
                found.add(UNKNOWN)  # the answer repeated words that the call was given
        return frozenset(found)

    async def _hidden_words(self) -> dict[str, str]:
        """The words that the model knows by name only, by name."""
        words = {handle: run_text(ended)[0] for handle, ended in self._hidden.runs.items()}
        for handle, call in self._hidden.calls.items():
            words[handle] = words_of(await self._gate.calls.settled_answer(call))
        return words

    def _waiting_outcome(self) -> Needs | None:
        """What the turn waits for; None if it was answered in the meantime and the turn continues."""
        waiting = self._gate.escalations.waiting()
        return needs_approval(waiting) if waiting else None

    def _staged_by_turn(self) -> tuple[str, ...]:
        """What this turn staged and is still staged: proposals of earlier turns do not change the outcome."""
        return tuple(path for path in self._proposals() if path in self._conversation.staged)

    def _last_text(self) -> str | None:
        return self._conversation.reply.text if self._conversation.reply else None


def _written_by(author: Level, call: Call, named: Mapping[str, Origins] | None = None) -> CallOrigins:
    """The origins of a call that is not made by a program: its author wrote every argument, with the words that it named."""
    written = frozenset({Origin(kind="written")})
    return CallOrigins(
        author=author,
        arguments={name: written | (named or {}).get(name, frozenset()) for name in call.arguments},
    )
