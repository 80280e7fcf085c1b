"""The circuit breaker: the same call in one turn, in sequence or all at once, is refused at its limit."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.gate.gate_setup import READ, GateSetup, read, record

from holdfast.core import (
    PERSON,
    Answer,
    Call,
    Change,
    Parked,
    Performed,
    Refused,
    Returned,
    SystemClock,
    Tool,
    Verdict,
)
from holdfast.core.events import MessagePosted, SessionOpened
from holdfast.gate import GateSettings
from holdfast.policy import FixedPolicy
from holdfast.store import Home, open_store

REPEATS = GateSettings(max_repeats=3)


@asynccontextmanager
async def on_disk(folder: Path, verdict: Verdict) -> AsyncIterator[GateSetup]:
    """A gate whose records take a while, so that calls at once are all judged before the first is on record."""
    home = Home(folder)
    home.prepare()
    store = await open_store(home, clock=SystemClock())
    opened = SessionOpened(principal=PERSON, folder="/", workspace="", policy="", policy_digest="", model="")
    journal = await store.create(opened)
    await journal.append(MessagePosted(turn=1, text="go", principal=PERSON))
    try:
        yield GateSetup(journal, policy=FixedPolicy(default=verdict), settings=REPEATS)
    finally:
        await store.close()


async def at_once(setup: GateSetup, *numbers: int) -> list[Answer]:
    return await asyncio.gather(*(setup.gate.submit(read("a", number=number)) for number in numbers))


@pytest.mark.parametrize(("verdict", "passed"), [("allow", Returned), ("escalate", Parked)])
async def test_a_burst_of_the_same_call_is_limited_like_a_sequence(
    tmp_path: Path, verdict: Verdict, passed: type[Answer]
) -> None:
    async with on_disk(tmp_path, verdict) as setup:
        answers = await at_once(setup, *range(1, 9))
        assert [type(answer) for answer in answers] == [passed] * 3 + [Refused] * 5
        assert all(answer.rule == "circuit-breaker" for answer in answers if isinstance(answer, Refused))
        assert len(setup.tools.performed) == (3 if verdict == "allow" else 0)


async def test_a_call_that_waited_keeps_its_number_among_identical_calls() -> None:
    setup = GateSetup(await record(), settings=REPEATS)
    answers = await at_once(setup, *range(1, 9))
    waiting = [answer for answer in answers if isinstance(answer, Parked)]
    for parked in waiting:
        await setup.answer(parked)
    taken_up = GateSetup(setup.journal, settings=REPEATS)
    assert await at_once(taken_up, 1, 2, 3) == [Returned(value="read")] * 3
    assert isinstance(await taken_up.gate.submit(read("a", number=9)), Refused)


async def test_a_resubmitted_call_is_not_counted_again() -> None:
    setup = GateSetup(await record(), policy=FixedPolicy(default="allow"), settings=REPEATS)
    for _ in range(9):
        assert await setup.gate.submit(read("a")) == Returned(value="read")
    assert isinstance(await setup.gate.submit(read("a", number=2)), Returned)


async def test_f03_calls_that_get_new_answers_are_not_a_loop() -> None:
    answers = iter(range(100))
    setup = GateSetup(
        await record(),
        policy=FixedPolicy(default="allow"),
        settings=REPEATS,
        function=lambda _: next(answers),
    )
    for number in range(1, 12):
        assert await setup.gate.submit(read("a", number=number)) == Returned(value=number - 1)


async def test_f03_the_same_answer_counts_again_after_a_new_one() -> None:
    answers = iter(["old", "old", "new", "new", "new", "never"])
    setup = GateSetup(
        await record(),
        policy=FixedPolicy(default="allow"),
        settings=REPEATS,
        function=lambda _: next(answers),
    )
    got = [await setup.gate.submit(read("a", number=number)) for number in range(1, 7)]
    assert [type(answer) for answer in got] == [Returned] * 5 + [Refused]


class _Appending:
    """A tool whose calls change a file, or write what is already there."""

    def __init__(self, *, is_change: bool) -> None:
        self._is_change = is_change
        self.count = 0

    def tools(self) -> tuple[Tool, ...]:
        return (READ,)

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        self.count += 1
        before, after = (str(self.count), str(self.count + 1)) if self._is_change else ("same", "same")
        return Performed(changes=(Change(path="a", kind="modified", before=before, after=after),))


@pytest.mark.parametrize(("is_change", "made"), [(True, 9), (False, 3)])
async def test_f03_calls_that_change_something_are_not_a_loop(is_change: bool, made: int) -> None:
    tools = _Appending(is_change=is_change)
    journal = await record()
    setup = GateSetup(
        journal,
        policy=FixedPolicy(default="allow"),
        settings=REPEATS,
        toolset=tools,  # type: ignore[arg-type]
    )
    for number in range(1, 10):
        await setup.gate.submit(read("a", number=number))
    assert tools.count == made
    reopened = GateSetup(
        journal,
        policy=FixedPolicy(default="allow"),
        settings=REPEATS,
        toolset=tools,  # type: ignore[arg-type]
    )
    answer = await reopened.gate.submit(read("a", number=10))
    assert isinstance(answer, Returned if is_change else Refused)
