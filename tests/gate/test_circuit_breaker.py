"""The circuit breaker: the same call in one turn, in sequence or all at once, is refused at its limit."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.gate.gate_setup import GateSetup, read, record

from holdfast.core import PERSON, Answer, Parked, Refused, Returned, SystemClock, Verdict
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
