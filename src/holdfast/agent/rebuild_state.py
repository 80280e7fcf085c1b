"""Rebuilding the variables of a guest whose recorded state cannot be loaded, such as one from another data directory.

The journal has the code of every run and the answer of every call. Running the code again with these answers leads to the
same variables, and nothing has an effect: no tool is called, and no byte of the foreign state is read.
"""

from collections.abc import Iterable
from typing import NamedTuple

from holdfast.agent.tool_replies import explain_refusal
from holdfast.core import Answer, Call, JsonObject, Tool, call_id
from holdfast.core.errors import Diverged, JournalDamaged
from holdfast.core.events import RecordedEvent, RunEnded, RunStarted
from holdfast.gate import CallIndex
from holdfast.guests import Guest, GuestLimits, RunRequest

MAX_RUNS = 1000
"""Running more runs again could take very long, and an archive can come from anyone."""


class RecordedAnswers:
    """Answers the calls of one run from the journal, in order. Raises Diverged for a call that it does not have."""

    def __init__(self, answers: CallIndex, started: RunStarted) -> None:
        self._answers = answers
        self._turn = started.turn
        self.number = started.first_call - 1

    async def __call__(self, operation: str, arguments: JsonObject) -> Answer:
        self.number += 1
        call = Call(id=call_id(self._turn, self.number), operation=operation, arguments=arguments)
        answer = await self._answers.answer(call)
        if answer is None:
            raise Diverged(f"it makes call {call.id} to {operation}, which is not in the journal")
        return explain_refusal(answer)


class FinishedCode(NamedTuple):
    """A run on record."""

    started: RunStarted
    ended: RunEnded


def runs_leading_to(state: str, recorded: Iterable[RecordedEvent]) -> tuple[FinishedCode, ...] | None:
    """The runs that led to a state, first to last; None if the journal does not have them all."""
    started: dict[tuple[int, int], RunStarted] = {}
    by_state: dict[str, FinishedCode] = {}
    for entry in recorded:
        event = entry.event
        if isinstance(event, RunStarted):
            started[event.turn, event.run] = event
        elif isinstance(event, RunEnded) and event.state is not None and (event.turn, event.run) in started:
            # The first run that ended in a state leads to it without a detour.
            by_state.setdefault(event.state, FinishedCode(started[event.turn, event.run], event))
    chain: list[FinishedCode] = []
    wanted: str | None = state
    while wanted is not None:
        run = by_state.get(wanted)
        if run is None or len(chain) == MAX_RUNS:
            return None
        chain.append(run)
        wanted = run.started.state
    return tuple(reversed(chain))


def run_limits(limits: GuestLimits, started: RunStarted) -> GuestLimits:
    """The limits of a run: the configured ones, or those with the time that the host gave it."""
    return limits if started.timeout_seconds is None else limits.with_timeout(started.timeout_seconds)


async def rebuild_state(
    runs: Iterable[FinishedCode],
    *,
    guest: Guest,
    answers: CallIndex,
    tools: tuple[Tool, ...],
    limits: GuestLimits,
) -> bool:
    """Bring a guest to the state after some runs. Returns False, with the guest in any state, if a run differs from its record."""
    await guest.restore(b"")
    for started, ended in runs:
        if (ended.engine or started.engine) != guest.capabilities.engine:
            return False
        request = RunRequest(
            code=started.code,
            tools=tools,
            limits=run_limits(limits, started),
            seed=started.seed,
            now_ms=started.started_ms,
        )
        recorded_answers = RecordedAnswers(answers, started)
        try:
            run = await guest.run(request, recorded_answers)
        except (Diverged, JournalDamaged):
            return False
        status = "error" if run.status == "refused" else run.status
        if (status, run.printed) != (ended.status, ended.printed):
            return False
    return True
