"""Replay: every run of a session's code once more, with the recorded answers and no model. What differs is reported."""

from collections.abc import Iterable

from holdfast.agent import explained
from holdfast.core import Answer, Call, JsonObject, Tool, Value, call_id
from holdfast.core.errors import Diverged
from holdfast.core.events import CallIntended, CallRefused, Recorded, RunEnded, RunStarted
from holdfast.core.fold import Fold, effective
from holdfast.gate import Calls
from holdfast.guests import Guest, RunRequest


class Divergence(Value):
    """One run that did not do what the journal says."""

    turn: int
    run: int
    what: str


class Replay(Value):
    """What was run again, and where it differed."""

    runs: int
    calls: int
    divergences: tuple[Divergence, ...]


class _Past:
    """A journal as a fold follows it, without a writer."""

    def __init__(self, recorded: list[Recorded]) -> None:
        self.recorded = recorded

    def follow(self, follower: Fold, /) -> None:
        for entry in self.recorded:
            follower(entry)


async def replay(recorded: Iterable[Recorded], *, guest: Guest, tools: tuple[Tool, ...]) -> Replay:
    """Run every recorded run again in a fresh guest. Nothing is performed and nothing is written."""
    counted = effective(recorded)
    answers = Calls(_Past(counted))
    ends = {(e.event.turn, e.event.run): e.event for e in counted if isinstance(e.event, RunEnded)}
    starts = {(e.event.turn, e.event.run): e.event for e in counted if isinstance(e.event, RunStarted)}
    found: list[Divergence] = []
    for place, started in starts.items():
        if place not in ends:
            continue
        request = RunRequest(code=started.code, tools=tools, seed=started.seed, now_ms=started.started_ms)
        try:
            run = await guest.run(request, _Answers(answers, started))
            what = _difference(run.status, run.value, run.printed, ends[place])
        except Diverged as error:
            what = str(error)
        if what:
            found.append(Divergence(turn=started.turn, run=started.run, what=what))
    calls = sum(isinstance(entry.event, CallIntended | CallRefused) for entry in counted)
    return Replay(runs=len(ends), calls=calls, divergences=tuple(found))


class _Answers:
    """Answers a run's calls from the record, in their order."""

    def __init__(self, answers: Calls, started: RunStarted) -> None:
        self._answers = answers
        self._turn = started.turn
        self._number = started.first_call - 1

    async def __call__(self, operation: str, arguments: JsonObject) -> Answer:
        self._number += 1
        call = Call(id=call_id(self._turn, self._number), operation=operation, arguments=arguments)
        answer = self._answers.answer(call)
        if answer is None:
            raise Diverged(f"it asks for {operation} as call {call.id}, which is not on record")
        return explained(answer)


def _difference(status: str, value: object, printed: str, ended: RunEnded) -> str:
    if ("error" if status == "refused" else status) != ended.status:
        return f"it ended as {status}, the journal says {ended.status}"
    if value != ended.value:
        return "the value of its last line is another"
    if printed != ended.printed:
        return "it printed something else"
    return ""
