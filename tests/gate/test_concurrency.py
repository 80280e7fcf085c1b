"""Concurrent events on disk, where an event is in flight before it is recorded."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import pytest
from tests.gate.gate_setup import ASKS, GateSetup, read

from holdfast.core import PERSON, FakeClock, Needs, Parked, Response, Returned
from holdfast.core.errors import EscalationUnknown
from holdfast.core.events import EscalationAnswered, EscalationOpened, MessagePosted, SessionOpened
from holdfast.guests import OnCall, Run, RunRequest, ScriptedEngine, script
from holdfast.guests.scripted import ScriptedGuest
from holdfast.policy import FixedPolicy
from holdfast.store import Home, Journal, open_store
from holdfast.testing import memory_session


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Journal]:
    home = Home(tmp_path / "home")
    home.prepare()
    store = await open_store(home, clock=FakeClock())
    opened = SessionOpened(principal=PERSON, folder="/", workspace="", policy="", policy_digest="", model="")
    made = await store.create(opened)
    await made.append(MessagePosted(turn=1, text="go", principal=PERSON))
    yield made
    await made.release()
    await store.close()


async def test_concurrent_calls_do_not_share_a_use_of_a_grant(journal: Journal) -> None:
    setup = GateSetup(journal)
    await setup.answer(await setup.asked(read("/w/a")), Response(verdict="approve", scope="times", amount=3))
    assert isinstance(await setup.gate.submit(read("/w/a")), Returned)
    answers = await asyncio.gather(*(setup.gate.submit(read("/w/a", number=n)) for n in range(2, 7)))
    assert [type(each) for each in answers] == [Returned, Returned, Parked, Parked, Parked]
    assert len(setup.tools.performed) == 3


async def test_an_answer_during_a_withdrawal_is_late_and_grants_nothing(
    journal: Journal,
) -> None:
    setup = GateSetup(journal)
    parked = await setup.asked(read("/w/a"))
    withdrawn = asyncio.ensure_future(setup.gate.escalations.expire(parked.escalation, "cancelled"))
    await asyncio.sleep(0)
    with pytest.raises(EscalationUnknown, match="is too late: cancelled"):
        await setup.answer(parked, Response(verdict="approve", scope="session"))
    await withdrawn
    assert setup.gate.grants.active() == ()
    assert not [entry for entry in journal.recorded if isinstance(entry.event, EscalationAnswered)]


async def test_an_approved_call_submitted_twice_at_once_is_executed_once(
    journal: Journal,
) -> None:
    setup = GateSetup(journal)
    await setup.answer(await setup.asked(read("/w/a")))
    answers = await asyncio.gather(*(setup.gate.submit(read("/w/a")) for _ in range(3)))
    assert answers == [Returned(value="read")] * 3
    assert len(setup.tools.performed) == 1


class SlowEngine(ScriptedEngine):
    """An engine whose guests park slowly: not before the escalation is answered."""

    def __init__(self) -> None:
        super().__init__()
        self.answered = asyncio.Event()

    def guest(self) -> ScriptedGuest:
        guest, go_on = super().guest(), self.answered.wait
        run = guest.run

        async def slowly(request: RunRequest, on_call: OnCall) -> Run:
            parked = await run(request, on_call)
            await go_on()
            return parked

        guest.run = slowly  # type: ignore[method-assign]
        return guest


@pytest.mark.parametrize("verdict", ["approve", "deny"])
@pytest.mark.parametrize("is_code", [True, False])
async def test_an_answer_before_the_turn_parks_lets_it_continue(
    verdict: Literal["approve", "deny"], is_code: bool
) -> None:
    engine, policy = SlowEngine(), FixedPolicy(default="escalate")
    async with memory_session([ASKS, "Done."], engine=engine, policy=policy) as session:

        async def answer() -> None:
            async for entry in session.events():
                if isinstance(entry.event, EscalationOpened):
                    await session.resolve(entry.event.escalation.id, Response(verdict=verdict))
                    engine.answered.set()
                    return

        answering = asyncio.ensure_future(answer())
        code = script({"call": "world.write", "arguments": {"path": "a", "content": ""}})
        outcome = await (session.execute(code) if is_code else session.send("go"))
        await answering
        assert not isinstance(outcome, Needs)
        made = session.audit()[0]
        assert made.result == ("ok" if verdict == "approve" else "refused")
