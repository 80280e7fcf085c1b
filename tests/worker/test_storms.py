"""Workers die, stop and wake up again: nothing that was acknowledged is lost, and no effect happens twice.

Effects are counted by a file outside of Holdfast, to which each call adds a line.
"""

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.fork_server import Forked
from tests.worker.witness_main import CALLS, POLICY, TURNS, options, start_runtime

from holdfast.app import Runtime
from holdfast.core import SessionId, SystemClock
from holdfast.core.decisions import Response
from holdfast.core.events import CallIntended, CallSettled, MessagePosted, TurnEnded
from holdfast.services import deliver_answer
from holdfast.store import WorkStore
from holdfast.worker import Dispatch, install_dispatch, open_dispatch, post_message

if TYPE_CHECKING:
    from tests.support.postgres import Databases

PROGRAM = ("-m", "tests.worker.witness_main")
PATIENCE_SECONDS = 600
STORM = ("--places=2", "--model-seconds=0.05", "--call-seconds=0.2")
"""Slow calls: most kills find one in the middle."""


@dataclass
class Fleet:
    """Some workers, and what the test does to them."""

    url: str
    folder: Path
    runtime: Runtime
    store: WorkStore
    dispatch: Dispatch
    workers: list[Forked] = field(default_factory=list)

    async def add_worker(self, *options: str, url: str | None = None) -> Forked:
        """Start a worker, and wait until it is about to take jobs."""
        theirs, ours = os.pipe()
        worker = Forked.start(*PROGRAM, url or self.url, str(self.folder), *options, stdout=ours)
        os.close(ours)
        self.workers.append(worker)
        try:
            await until_readable(theirs)
            assert os.read(theirs, 100) == b"ready\n"
        finally:
            os.close(theirs)
        return worker

    async def kill(self, worker: Forked) -> None:
        """Kill a worker as the kernel does when memory is short."""
        self.workers.remove(worker)
        os.kill(worker.pid, signal.SIGKILL)
        assert await worker.wait() == -signal.SIGKILL

    async def create(self, name: str, *, messages: int = TURNS, note: str = "") -> SessionId:
        model, tools = options(self.folder, name)
        session = await self.runtime.create(session=name, model=model, policy=POLICY, toolsets=[tools])
        if note:
            await session.note("test", note)
        await session.close()
        for number in range(messages):
            await post_message(
                self.store, self.dispatch, session.id, f"message {number}", id=f"{name}-{number}"
            )
        return SessionId(session.id)

    async def create_some(self, first: int, count: int) -> list[SessionId]:
        """Sessions in groups that share statements, and leave some connections of the store free."""
        made: list[SessionId] = []
        for start in range(first, first + count, 10):
            numbers = range(start, min(start + 10, first + count))
            made += await asyncio.gather(*(self.create(f"s{number}") for number in numbers))
        return made

    def effects(self) -> Counter[str]:
        """What the witness saw."""
        path = self.folder / "witness"
        return Counter(path.read_text().splitlines() if path.exists() else [])

    def effect_count(self) -> int:
        path = self.folder / "witness"
        return path.read_bytes().count(b"\n") if path.exists() else 0

    async def until_idle(self) -> None:
        """Wait until no session has anything to do."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await self.dispatch.backlog():  # noqa: ASYNC110
                await asyncio.sleep(0.3)  # each look opens a connection

    async def until_effects(self, count: int, *, or_idle: bool = False) -> bool:
        """Wait until the witness saw so many effects, or until none will follow. Returns which of the two."""
        looks = 0
        async with asyncio.timeout(PATIENCE_SECONDS):
            while self.effect_count() < count:
                looks += 1
                if or_idle and looks % 200 == 0 and not await self.dispatch.backlog():
                    return False  # seldom looked at, because each look opens a connection
                await asyncio.sleep(0.005)
        return True


async def until_readable(descriptor: int) -> None:
    """Wait until something can be read, or the other end is closed."""
    loop, is_ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, is_ready.set)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await is_ready.wait()
    finally:
        loop.remove_reader(descriptor)


@asynccontextmanager
async def fleet(
    databases: "Databases",
    folder: Path,
    *,
    workers: int,
    engine: str | None = None,
    options: Sequence[str] = (),
) -> AsyncIterator[Fleet]:
    url = await databases.take()
    if engine is not None:
        await install_dispatch(url, engine=engine)
    runtime, store = await start_runtime(url, folder)
    opened = Fleet(url, folder, runtime, store, open_dispatch(url, engine=store.engine))
    async with AsyncExitStack() as stack:
        stack.callback(databases.give_back, url)
        stack.push_async_callback(runtime.close)
        stack.push_async_callback(_end, opened)
        for _ in range(workers):
            await opened.add_worker(*options)
        yield opened


async def _end(fleet: Fleet) -> None:
    for worker in tuple(fleet.workers):
        await fleet.kill(worker)


async def check(fleet: Fleet, sessions: list[SessionId], *, messages: int = TURNS) -> Counter[str]:
    """Every message is answered once, and no call was made twice. Returns how the calls ended."""
    effects = fleet.effects()
    assert {line: count for line, count in effects.items() if count > 1} == {}, "made twice"
    ends: Counter[str] = Counter()
    for session in sessions:
        events = [entry.event for entry in await fleet.store.read(session)]
        assert (await fleet.store.verify(session)).is_intact
        posted = [event.message for event in events if isinstance(event, MessagePosted)]
        assert sorted(posted) == sorted(f"{session}-{number}" for number in range(messages))
        assert sum(isinstance(event, TurnEnded) for event in events) == messages
        intended = {event.call.id: event.call for event in events if isinstance(event, CallIntended)}
        settled = {event.call: event.status for event in events if isinstance(event, CallSettled)}
        assert settled.keys() >= intended.keys(), "a call without an end"
        for id, call in intended.items():
            ends[settled[id]] += 1
            seen = effects[f"{session} {call.arguments['to']}"]
            assert seen == 1 or settled[id] == "unknown", (
                f"{call.arguments} is {settled[id]}, seen {seen} times"
            )
        assert await fleet.store.requests(session) == []
    return ends


async def storm(fleet: Fleet, *, kills: int, seed: int) -> Counter[str]:
    """Kill one, two or all workers, each time after a call took effect and while the next ones start; then let the rest work."""
    chance = random.Random(seed)
    made = await fleet.create_some(0, kills // 8)
    ready, left = list(fleet.workers), kills
    async with asyncio.TaskGroup() as starting:

        async def replace() -> None:
            ready.append(await fleet.add_worker(*STORM))

        while left:
            seen = fleet.effect_count()
            while not await fleet.until_effects(seen + 1, or_idle=True):
                made += await fleet.create_some(len(made), 4)
            chance.shuffle(ready)
            for worker in ready[: min(left, chance.randint(1, 3))]:
                ready.remove(worker)
                await fleet.kill(worker)
                starting.create_task(replace())
                left -= 1
    await fleet.until_idle()
    return await check(fleet, made)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kills", [200, pytest.param(1000, marks=pytest.mark.soak)])
async def test_killed_workers_lose_nothing_and_repeat_nothing(
    postgres_databases: "Databases", tmp_path: Path, kills: int
) -> None:
    async with fleet(postgres_databases, tmp_path, workers=3, options=STORM) as opened:
        ends = await storm(opened, kills=kills, seed=kills)
    print(dict(ends))
    assert ends["ok"] > 0
    assert ends["unknown"] > kills // 10, "too few kills hit a call"


@pytest.mark.timeout(400)
async def test_a_worker_that_was_stopped_and_wakes_up_writes_nothing(
    postgres_databases: "Databases", tmp_path: Path
) -> None:
    async with fleet(postgres_databases, tmp_path, workers=1) as opened:
        (sleeper,) = opened.workers
        sessions = [await opened.create(f"s{number}") for number in range(3)]
        await opened.until_effects(2)
        os.kill(sleeper.pid, signal.SIGSTOP)
        await opened.add_worker()
        await opened.until_idle()
        os.kill(sleeper.pid, signal.SIGCONT)
        os.kill(sleeper.pid, signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await sleeper.wait()
        opened.workers.remove(sleeper)
        await check(opened, sessions)


@pytest.mark.timeout(400)
async def test_a_worker_that_is_told_to_stop_leaves_its_turns_to_another(
    postgres_databases: "Databases", tmp_path: Path
) -> None:
    async with fleet(postgres_databases, tmp_path, workers=1) as opened:
        (first,) = opened.workers
        sessions = [await opened.create(f"s{number}") for number in range(3)]
        await opened.until_effects(1)
        os.kill(first.pid, signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await first.wait() == 0
        opened.workers.remove(first)
        await opened.add_worker()
        await opened.until_idle()
        await check(opened, sessions)


@pytest.mark.timeout(400)
async def test_an_approval_waits_without_a_process_and_is_answered_from_elsewhere(
    postgres_databases: "Databases", tmp_path: Path
) -> None:
    async with fleet(postgres_databases, tmp_path, workers=1) as opened:
        session = await opened.create("ask-1", messages=1)
        await opened.until_idle()
        assert await opened.store.holder(session) is None
        assert opened.effects() == {}
        (waiting,) = await opened.store.waiting()
        await opened.kill(opened.workers[0])  # nothing of it lives on
        await deliver_answer(
            opened.runtime.home,
            opened.store,
            session,
            waiting.escalation,
            Response(verdict="approve"),
            transport="test",
            clock=SystemClock(),
        )
        await opened.add_worker()
        await opened.until_idle()
        assert opened.effects() == {f"{session} boss": 1}
        await check(opened, [session], messages=1)


@pytest.mark.timeout(400)
async def test_workers_whose_clocks_are_an_hour_off_lose_nothing_and_repeat_nothing(
    postgres_databases: "Databases", tmp_path: Path
) -> None:
    async with fleet(postgres_databases, tmp_path, workers=0) as opened:
        early = await opened.add_worker("--clock=-3600")
        sessions = [await opened.create(f"s{number}") for number in range(3)]
        await opened.until_effects(2)
        await opened.add_worker("--clock=3600")  # it must not take early for dead
        await opened.until_effects(4)
        await opened.kill(early)
        await opened.until_idle()
        await check(opened, sessions)


@pytest.mark.timeout(400)
async def test_an_old_worker_leaves_sessions_that_it_cannot_read_to_a_new_one(
    postgres_databases: "Databases", tmp_path: Path
) -> None:
    async with fleet(postgres_databases, tmp_path, workers=0) as opened:
        await opened.add_worker("--without=Noted")
        old = [await opened.create(f"old{number}") for number in range(2)]
        new = [await opened.create(f"new{number}", note="of a newer version") for number in range(2)]
        await opened.until_effects(len(CALLS) * TURNS * len(old))
        assert not [line for line in opened.effects() if line.startswith("new")]
        assert await opened.dispatch.failed() == 0
        await opened.add_worker()
        await opened.until_idle()
        await check(opened, [*old, *new])
        assert not any(summary.is_damaged for summary in await opened.store.sessions())
