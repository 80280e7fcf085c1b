"""Replay: run a session's code again with the recorded answers and no model, and report what differs."""

from collections.abc import Iterable
from itertools import zip_longest
from typing import Any

from holdfast.agent import RecordedAnswers
from holdfast.core import Call, Json, JsonObject, Tool, Value, pluralize
from holdfast.core.errors import Diverged
from holdfast.core.events import CallIntended, CallRefused, RecordedEvent, RunEnded, RunStarted
from holdfast.core.projection import Projection, without_rewound
from holdfast.gate import CallIndex, FetchBlob, LargeValues
from holdfast.guests import Guest, Run, RunRequest

_MAX_EXCERPT = 60


class Divergence(Value):
    """One run that differs from the journal."""

    turn: int
    run: int
    what: str


class Replay(Value):
    """What was run again and where it differed; `skipped` runs depend on files that the journal does not have."""

    runs: int
    calls: int
    divergences: tuple[Divergence, ...]
    skipped: int = 0


class _ReadOnlyJournal:
    """A journal without a writer, for a projection to follow."""

    def __init__(self, recorded: list[RecordedEvent]) -> None:
        self.recorded = recorded

    def follow(self, follower: Projection[Any], /) -> None:
        for entry in self.recorded:
            follower(entry)


async def replay(
    recorded: Iterable[RecordedEvent],
    *,
    guest: Guest,
    tools: tuple[Tool, ...],
    fetch_blob: FetchBlob | None = None,
) -> Replay:
    """Run every recorded run of the guest's engine again. Nothing is executed by tools and nothing is written.

    Large results are read with `fetch_blob`; without it, a run that received one raises JournalDamaged.
    """
    events = without_rewound(recorded)
    starts = [entry.event for entry in events if isinstance(entry.event, RunStarted)]
    ends = {(e.event.turn, e.event.run): e.event for e in events if isinstance(e.event, RunEnded)}
    calls = [e.event.call for e in events if isinstance(e.event, CallIntended | CallRefused)]
    large_values = LargeValues(fetch_blob)
    answers = CallIndex(_ReadOnlyJournal(events), large_values=large_values)
    rerunner = _Rerunner(guest, answers, large_values, _with_called(tools, calls))
    found: list[Divergence] = []
    runs = skipped = 0
    for started in starts:
        ended = ends.get((started.turn, started.run))
        if ended is None:
            continue  # cancelled, or still open
        if (ended.engine or started.engine) != guest.capabilities.engine or not rerunner.knows(started.state):
            skipped += 1
            continue
        runs += 1
        last = max(_numbers_of(started, starts, calls), default=started.first_call - 1)
        what = await rerunner.run(started, ended, last)
        if what:
            found.append(Divergence(turn=started.turn, run=started.run, what=what))
    return Replay(runs=runs, calls=len(calls), divergences=tuple(found), skipped=skipped)


class _Rerunner:
    """A guest that is restored to where each run began. It uses its own states: recorded ones are signed."""

    def __init__(
        self, guest: Guest, answers: CallIndex, large_values: LargeValues, tools: tuple[Tool, ...]
    ) -> None:
        self._guest = guest
        self._answers = answers
        self._large_values = large_values
        self._tools = tools
        self._states: dict[str | None, bytes] = {None: b""}

    def knows(self, state: str | None) -> bool:
        """Whether the run that produced this state was run again."""
        return state in self._states

    async def run(self, started: RunStarted, ended: RunEnded, last_call: int) -> str:
        """What differs from the journal; empty if nothing does."""
        await self._guest.restore(self._states[started.state])
        request = RunRequest(
            code=started.code, tools=self._tools, seed=started.seed, now_ms=started.started_ms
        )
        answers = RecordedAnswers(self._answers, started)
        try:
            run = await self._guest.run(request, answers)
        except Diverged as error:
            return str(error)
        finally:
            if ended.state is not None:
                self._states[ended.state] = await self._guest.snapshot()
        if answers.number < last_call:
            return f"it made {pluralize(last_call - answers.number, 'call')} fewer than the journal has"
        return _difference(run, ended, self._large_values)


def _numbers_of(started: RunStarted, starts: list[RunStarted], calls: list[Call]) -> list[int]:
    """The numbers of the calls of a run: from its first to the first of the next run."""
    after = (started.turn, started.run + 1)
    end = next((each.first_call for each in starts if (each.turn, each.run) == after), None)
    numbers = (int(call.id.partition(".")[2]) for call in calls if call.turn == started.turn)
    return [number for number in numbers if number >= started.first_call and (end is None or number < end)]


def _with_called(tools: tuple[Tool, ...], calls: list[Call]) -> tuple[Tool, ...]:
    """These tools, plus one for each other recorded operation: its server may be gone, its answers are not."""
    known = {tool.name for tool in tools}
    arguments: dict[str, JsonObject] = {}
    for call in calls:
        if call.operation not in known:
            arguments.setdefault(call.operation, {}).update({key: {} for key in call.arguments})
    others = (
        Tool(name=name, parameters={"type": "object", "properties": properties}, roles={})
        for name, properties in sorted(arguments.items())
    )
    return (*tools, *others)


def _difference(run: Run, ended: RunEnded, large_values: LargeValues) -> str:
    status = "error" if run.status == "refused" else run.status
    if status != ended.status:
        return f"it ended as {status}; the journal has {ended.status}"
    if not large_values.is_recorded_value(run.value, ended):
        value, *_ = large_values.record_value(run.value)
        return f"its last line is {_excerpt(value)}; the journal has {_excerpt(ended.value)}"
    if run.printed == ended.printed:
        return ""
    lines = zip_longest(run.printed.splitlines(keepends=True), ended.printed.splitlines(keepends=True))
    number, now, then = next((n, now, then) for n, (now, then) in enumerate(lines, 1) if now != then)
    return f"line {number} of its output is {_excerpt(now)}; the journal has {_excerpt(then)}"


def _excerpt(value: Json) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= _MAX_EXCERPT else f"{text[:_MAX_EXCERPT]}..."
