"""Close and cancel: prompt, done once, and completed however often the caller is cancelled."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.app import Runtime
from holdfast.core import Call, Escalation, FunctionToolset, Nonconverged, Performed, Response, Tool
from holdfast.core.events import CallSettled, TurnEnded, TurnParked
from holdfast.models import ScriptedModel
from holdfast.policy import FixedPolicy
from holdfast.session import Session

STAY = Tool(name="bench.stay", parameters={"type": "object", "properties": {}}, roles={})


LEAVE = Tool(name="door.leave", parameters={"type": "object", "properties": {}}, roles={})


class BlockingToolset(FunctionToolset):
    """A tool that closes the session it is called from."""

    def __init__(self) -> None:
        super().__init__({LEAVE.name: (LEAVE, lambda _: None)})
        self.session: Session | None = None

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        assert self.session is not None
        await self.session.close()
        return Performed()


class BlockingEngine(FunctionToolset):
    """A tool that blocks until it is cancelled, and then for a given time."""

    def __init__(self) -> None:
        super().__init__({STAY.name: (STAY, lambda _: None)})
        self.is_sat_on = asyncio.Event()
        self.is_left = asyncio.Event()
        self.may_leave = asyncio.Event()
        self.may_leave.set()

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        self.is_sat_on.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.is_left.set()
            await self.may_leave.wait()
        return Performed()


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[Runtime]:
    runtime = await Runtime.start(home=tmp_path / "home")
    yield runtime
    await runtime.close()


async def running_turn(runtime: Runtime, bench: BlockingEngine) -> Session:
    return await runtime.create(
        policy=FixedPolicy(default="allow"), toolsets=[bench], model=ScriptedModel([]), sandbox="lisp"
    )


async def start_turn(session: Session) -> None:
    await session.execute("(bench/stay)", language="lisp")


async def within_a_moment(*events: asyncio.Event) -> None:
    for event in events:
        await asyncio.wait_for(event.wait(), 60)


async def test_a_cancelled_close_still_releases_the_session(runtime: Runtime) -> None:
    bench = BlockingEngine()
    bench.may_leave.clear()
    session = await running_turn(runtime, bench)
    turn = asyncio.create_task(start_turn(session))
    await within_a_moment(bench.is_sat_on)
    closing = asyncio.create_task(session.close())
    await within_a_moment(bench.is_left)
    closing.cancel()
    await asyncio.gather(closing, return_exceptions=True)
    bench.may_leave.set()
    await session.close()
    await asyncio.gather(turn, return_exceptions=True)
    again = await runtime.resume(session.id, policy=FixedPolicy(default="allow"), needs_model=False)
    assert again.id == session.id, "no process holds it any more"


async def test_a_second_close_waits_until_the_session_is_closed(runtime: Runtime) -> None:
    session = await running_turn(runtime, BlockingEngine())
    first = asyncio.create_task(session.close())
    await asyncio.sleep(0)  # it has started
    await session.close()
    again = await runtime.resume(session.id, policy=FixedPolicy(default="allow"), needs_model=False)
    assert again.id == session.id
    await first


@pytest.mark.parametrize("how", ["cancel", "close"])
async def test_a_task_that_continues_after_its_turn_was_cancelled_does_not_block(
    runtime: Runtime, how: str
) -> None:
    bench, rest_of_life = BlockingEngine(), asyncio.Event()
    session = await running_turn(runtime, bench)

    async def live() -> None:
        try:
            await start_turn(session)
        except asyncio.CancelledError:
            await rest_of_life.wait()

    life = asyncio.create_task(live())
    await within_a_moment(bench.is_sat_on)
    await asyncio.wait_for(getattr(session, how)(), 60)
    assert not life.done()
    rest_of_life.set()
    await life


async def test_a_turn_cancelled_twice_ends_before_its_callers_continue(runtime: Runtime) -> None:
    bench = BlockingEngine()
    bench.may_leave.clear()
    session = await running_turn(runtime, bench)
    turn = asyncio.create_task(start_turn(session))
    await within_a_moment(bench.is_sat_on)
    turn.cancel()
    await within_a_moment(bench.is_left)
    bench.may_leave.set()
    while not turn.done():  # again at every step of its ending
        turn.cancel()
        await asyncio.sleep(0)
    assert isinstance(session.history()[-1].outcome, Nonconverged)
    recorded = await runtime.store.read(session.id)
    assert sum(isinstance(entry.event, TurnEnded) for entry in recorded) == 1


async def test_the_session_can_be_closed_from_within_a_question(runtime: Runtime) -> None:
    async def leave(escalation: Escalation) -> Response:
        await session.close()
        return Response(verdict="approve")

    bench = BlockingEngine()
    session = await runtime.create(
        policy=FixedPolicy(default="escalate"),
        toolsets=[bench],
        needs_model=False,
        sandbox="lisp",
        approver=leave,
    )
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(start_turn(session), 60)
    assert not bench.is_sat_on.is_set()


async def test_a_session_closed_by_its_own_call_settles_it_and_can_be_resumed(
    runtime: Runtime,
) -> None:
    door = BlockingToolset()
    session = door.session = await runtime.create(
        policy=FixedPolicy(default="allow"), toolsets=[door], needs_model=False, sandbox="lisp"
    )
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(session.execute("(door/leave)", language="lisp"), 60)
    recorded = [type(entry.event) for entry in await runtime.store.read(session.id)]
    assert recorded[-2:] == [CallSettled, TurnParked]
    again = await runtime.resume(session.id, needs_model=False, policy=FixedPolicy(default="allow"))
    assert again.status.has_open_turn
    assert again.unknown_calls() == ()
