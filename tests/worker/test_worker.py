"""A worker does what a session has to do, once, and leaves the rest to another."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from holdfast.app import Runtime
from holdfast.core import Call, Limits, Nonconverged, Performed, SessionId, SystemClock, Tool
from holdfast.core.events import (
    BudgetRaised,
    CallSettled,
    ControlRequestApplied,
    MessagePosted,
    ModelReplied,
    TurnEnded,
)
from holdfast.gate import RaiseBudget
from holdfast.models import OnPiece, Prompt, Reply, ScriptedModel, use
from holdfast.policy import FixedPolicy
from holdfast.session import Session, Settings
from holdfast.store import MemoryStore
from holdfast.worker import MemoryDispatch, NotNow, Worker, cancel_turn, post_message, post_request


class Held(ScriptedModel):
    """Answers when it may."""

    def __init__(self) -> None:
        super().__init__(["one", "two", "three"])
        self.is_asked = asyncio.Event()
        self.may_answer = asyncio.Event()

    async def ask(self, prompt: Prompt, on_piece: OnPiece) -> Reply:
        self.is_asked.set()
        await self.may_answer.wait()
        return await super().ask(prompt, on_piece)


@dataclass
class Bench:
    """One session, and a worker for it."""

    runtime: Runtime
    store: MemoryStore
    dispatch: MemoryDispatch
    model: Held
    session: SessionId
    worker: Worker

    async def post(self, text: str, id: str) -> None:
        await post_message(self.store, self.dispatch, self.session, text, id=id)

    async def events(self, kind: type) -> list[object]:
        return [entry.event for entry in await self.store.read(self.session) if isinstance(entry.event, kind)]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    store = MemoryStore(clock=SystemClock())
    settings = Settings(acts_with="tools", restore_points="never")
    runtime = await Runtime.start(home=tmp_path / "home", settings=settings, store=store, servers=())
    model, policy = Held(), FixedPolicy(default="allow")
    session = await runtime.create(model=model, policy=policy)
    await session.close()

    async def resume(id: SessionId) -> Session:
        return await runtime.resume(id, model=model, policy=policy)

    dispatch = MemoryDispatch()
    requests = runtime.posted_requests
    assert requests is not None
    worker = Worker(store=store, dispatch=dispatch, resume=resume, requests=requests)
    yield Bench(runtime, store, dispatch, model, SessionId(session.id), worker)
    await runtime.close()


async def test_messages_become_turns_in_their_order(bench: Bench) -> None:
    bench.model.may_answer.set()
    await bench.post("first", "m1")
    await bench.post("second", "m2")
    await bench.worker.handle(bench.session)
    posted = await bench.events(MessagePosted)
    assert [(each.text, each.message) for each in posted if isinstance(each, MessagePosted)] == [
        ("first", "m1"),
        ("second", "m2"),
    ]
    assert len(await bench.events(TurnEnded)) == 2
    assert await bench.store.requests(bench.session) == []
    assert await bench.store.holder(bench.session) is None


async def test_a_message_that_is_on_record_is_not_sent_again(bench: Bench) -> None:
    bench.model.may_answer.set()
    await bench.post("first", "m1")
    await bench.worker.handle(bench.session)
    await bench.post("first", "m1")  # its worker died before it removed the request
    await bench.worker.handle(bench.session)
    assert len(await bench.events(MessagePosted)) == 1
    assert await bench.store.requests(bench.session) == []


async def test_a_job_without_work_does_nothing(bench: Bench) -> None:
    before = await bench.store.read(bench.session)
    await bench.worker.handle(bench.session)
    assert await bench.store.read(bench.session) == before
    await bench.worker.handle(SessionId("deleted"))


async def test_a_session_that_another_process_holds_is_tried_later(bench: Bench) -> None:
    held = await bench.store.open(bench.session)
    with pytest.raises(NotNow):
        await bench.worker.handle(bench.session)
    await held.release()
    await bench.worker.handle(bench.session)


async def test_a_worker_that_stops_parks_its_turn_for_another(bench: Bench) -> None:
    await bench.post("first", "m1")
    working = asyncio.create_task(bench.worker.handle(bench.session))
    await bench.model.is_asked.wait()
    bench.worker.stop()
    bench.worker.stop()  # the second one does not wait for what runs
    with pytest.raises(NotNow):
        await working
    assert await bench.store.holder(bench.session) is None
    assert await bench.events(TurnEnded) == []
    with pytest.raises(NotNow):
        await bench.worker.handle(bench.session)
    bench.model.may_answer.set()

    async def resume(id: SessionId) -> Session:
        return await bench.runtime.resume(id, model=bench.model, policy=FixedPolicy(default="allow"))

    requests = bench.runtime.posted_requests
    assert requests is not None
    other = Worker(store=bench.store, dispatch=bench.dispatch, resume=resume, requests=requests)
    await other.handle(bench.session)
    assert len(await bench.events(MessagePosted)) == len(await bench.events(TurnEnded)) == 1


async def test_a_worker_that_lost_its_session_does_not_end_the_job_of_its_successor(bench: Bench) -> None:
    await bench.post("first", "m1")
    working = asyncio.create_task(bench.worker.handle(bench.session))
    await bench.model.is_asked.wait()
    taken = bench.store._sessions[bench.session]
    taken.fence, taken.holder = taken.fence + 1, None  # as when this process was not seen for a while
    bench.model.may_answer.set()
    with pytest.raises(NotNow):
        await working
    assert await bench.events(TurnEnded) == []


async def test_a_cancelled_turn_is_not_resumed(bench: Bench) -> None:
    await bench.post("first", "m1")
    working = asyncio.create_task(bench.worker.handle(bench.session))
    await bench.model.is_asked.wait()
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    async with asyncio.timeout(60):
        while await bench.store.holder(bench.session) is not None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await cancel_turn(bench.store, bench.dispatch, bench.session, transport="web")
    bench.model.is_asked.clear()
    await bench.worker.handle(bench.session)
    assert not bench.model.is_asked.is_set()
    (applied,) = await bench.events(ControlRequestApplied)
    assert isinstance(applied, ControlRequestApplied)
    assert (applied.action, applied.error) == ("cancel-turn", "")


async def test_a_request_of_another_version_is_refused_on_record(bench: Bench) -> None:
    await bench.store.post_request(
        bench.session,
        b'{"do":"dance"}',
        post_jobs=bench.dispatch.post,
    )
    await bench.worker.handle(bench.session)
    (applied,) = await bench.events(ControlRequestApplied)
    assert isinstance(applied, ControlRequestApplied)
    assert applied.error
    assert await bench.store.requests(bench.session) == []


async def test_a_worker_that_stops_lets_the_step_that_runs_end(bench: Bench) -> None:
    await bench.post("first", "m1")
    working = asyncio.create_task(bench.worker.handle(bench.session))
    await bench.model.is_asked.wait()
    bench.worker.stop()
    bench.model.may_answer.set()
    await asyncio.gather(working, return_exceptions=True)
    # The model was asked once and its reply is on record, whether the turn had another step or not.
    assert len(await bench.events(ModelReplied)) == 1
    assert await bench.store.holder(bench.session) is None


async def test_a_turn_that_runs_is_cancelled_from_another_process(bench: Bench) -> None:
    await bench.post("first", "m1")
    working = asyncio.create_task(bench.worker.handle(bench.session))
    await bench.model.is_asked.wait()
    await cancel_turn(bench.store, bench.dispatch, bench.session, transport="web")
    await working
    (applied,) = await bench.events(ControlRequestApplied)
    (ended,) = await bench.events(TurnEnded)
    assert isinstance(applied, ControlRequestApplied)
    assert isinstance(ended, TurnEnded)
    assert (applied.transport, applied.error, ended.outcome) == ("web", "", Nonconverged(reason="cancelled"))
    assert await bench.store.requests(bench.session) == []


async def test_a_request_that_is_on_record_is_not_carried_out_again(bench: Bench) -> None:
    raised = RaiseBudget(added=Limits(calls=5))
    for _ in range(2):  # the second time, its worker died before it removed the request
        await post_request(bench.store, bench.dispatch, bench.session, raised, id="r1")
        await bench.worker.handle(bench.session)
    assert len(await bench.events(BudgetRaised)) == len(await bench.events(ControlRequestApplied)) == 1
    assert await bench.store.requests(bench.session) == []


class Steps:
    """One tool, whose calls the test lets end one by one."""

    def __init__(self) -> None:
        self.begun: list[object] = []
        self.is_begun = asyncio.Event()
        self.may_end = asyncio.Event()

    def tools(self) -> tuple[Tool, ...]:
        return (Tool(name="step.take", parameters={"properties": {"to": {"type": "string"}}}, roles={}),)

    async def perform(self, call: Call, *, is_staged: bool) -> Performed:
        self.begun.append(call.arguments["to"])
        self.is_begun.set()
        await self.may_end.wait()
        return Performed(result="taken")


async def test_a_worker_that_stops_lets_the_call_of_a_program_end_and_begins_no_other(tmp_path: Path) -> None:
    store = MemoryStore(clock=SystemClock())
    runtime = await Runtime.start(home=tmp_path / "home", settings=Settings(), store=store, servers=())
    code = "for to in ('first', 'second'):\n    step.take(to=to)\n'done'"
    model, steps = ScriptedModel([use("execute_code", {"code": code}), "finished"]), Steps()
    policy = FixedPolicy(default="allow")
    session = await runtime.create(model=model, policy=policy, toolsets=[steps])
    await session.close()

    async def resume(id: SessionId) -> Session:
        return await runtime.resume(id, model=model, policy=policy, toolsets=[steps])

    dispatch = MemoryDispatch()
    assert runtime.posted_requests is not None
    first, second = (
        Worker(
            store=store,
            dispatch=dispatch,
            resume=resume,
            requests=runtime.posted_requests,
            drain_seconds=600,
        )
        for _ in range(2)
    )
    id = SessionId(session.id)
    await post_message(store, dispatch, id, "go")
    working = asyncio.create_task(first.handle(id))
    await steps.is_begun.wait()
    first.stop()
    for _ in range(20):  # the tasks of the worker hear of it one after another
        await asyncio.sleep(0)
    steps.may_end.set()
    with pytest.raises(NotNow):
        await working
    assert steps.begun == ["first"]
    await second.handle(id)
    events = [entry.event for entry in await store.read(id)]
    assert steps.begun == ["first", "second"]
    assert [event.status for event in events if isinstance(event, CallSettled)] == ["ok", "ok"]
    assert sum(isinstance(event, TurnEnded) for event in events) == 1
    await runtime.close()


async def test_a_worker_keeps_a_session_without_its_lease_until_another_process_takes_it(
    bench: Bench,
) -> None:
    bench.model.may_answer.set()
    opened: list[SessionId] = []
    resume = bench.worker._resume

    async def counted(id: SessionId) -> Session:
        opened.append(id)
        return await resume(id)

    bench.worker._resume = counted
    running = asyncio.create_task(bench.worker.run(places=2))

    async def send(text: str) -> None:
        await bench.post(text, text)
        async with asyncio.timeout(60):
            while await bench.dispatch.backlog():  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    await send("one")
    assert await bench.store.holder(bench.session) is None
    assert bench.runtime.get(bench.session) is None
    await send("two")
    assert len(opened) == 1
    held = await bench.store.open(bench.session)  # and writes nothing
    await held.release()
    await send("three")
    assert len(opened) == 2
    bench.worker.stop()
    await running
    posted = [each.text for each in await bench.events(MessagePosted) if isinstance(each, MessagePosted)]
    assert posted == ["one", "two", "three"]
    assert len(await bench.events(TurnEnded)) == 3


async def test_jobs_of_a_session_that_runs_here_are_done_with_it(bench: Bench) -> None:
    await bench.post("first", "m1")
    first = asyncio.create_task(bench.worker.handle(bench.session))
    await bench.model.is_asked.wait()
    await bench.post("second", "m2")
    second = asyncio.create_task(bench.worker.handle(bench.session))
    bench.model.may_answer.set()
    await first
    await asyncio.gather(second, return_exceptions=True)  # a slow machine gives it again instead
    assert len(await bench.events(TurnEnded)) == 2
    assert await bench.store.requests(bench.session) == []
