"""Workers die, stop and wake up again: nothing that was acknowledged is lost, and no effect happens twice.

Effects are counted by a file outside of Holdfast, to which each call adds a line.
"""

import asyncio
import os
import random
import signal
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.fork_server import forked_python
from tests.worker.witness_main import POLICY, TURNS, options, start_runtime

from holdfast.app import Runtime
from holdfast.core import SessionId, SystemClock
from holdfast.core.decisions import Response
from holdfast.core.events import CallIntended, CallSettled, MessagePosted, TurnEnded
from holdfast.services import deliver_answer
from holdfast.store import WorkStore
from holdfast.worker import Dispatch, install_dispatch, open_dispatch, post_message

if TYPE_CHECKING:
    from tests.support.postgres import Databases

PROGRAM = Path(__file__).with_name("witness_main.py")
PATIENCE_SECONDS = 600
STORM = ("--places=2", "--model-seconds=0.5")
"""Slow workers: each kill finds them in the middle of something, and the work lasts."""


@dataclass
class Fleet:
    """Some workers, and what the test does to them."""

    url: str
    folder: Path
    runtime: Runtime
    store: WorkStore
    dispatch: Dispatch
    workers: list[Process] = field(default_factory=list)
    pids: dict[Process, int] = field(default_factory=dict)

    async def add_worker(self, *options: str, url: str | None = None) -> Process:
        process = await asyncio.create_subprocess_exec(
            *forked_python(str(PROGRAM), url or self.url, str(self.folder), *options), stdout=PIPE
        )
        assert process.stdout is not None
        self.pids[process] = int(await process.stdout.readline())
        self.workers.append(process)
        return process

    async def kill(self, process: Process) -> None:
        """Kill a worker as the kernel does when memory is short."""
        os.kill(self.pids[process], signal.SIGKILL)
        await process.wait()
        self.workers.remove(process)

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

    def effects(self) -> Counter[str]:
        """What the witness saw."""
        path = self.folder / "witness"
        return Counter(path.read_text().splitlines() if path.exists() else [])

    async def until_idle(self) -> None:
        """Wait until no session has anything to do."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while await self.dispatch.backlog():  # noqa: ASYNC110
                await asyncio.sleep(0.1)

    async def until_effects(self, count: int, *, or_idle: bool = False) -> bool:
        """Wait until the witness saw so many effects, or until none will follow. Returns which of the two."""
        looks = 0
        async with asyncio.timeout(PATIENCE_SECONDS):
            while sum(self.effects().values()) < count:
                looks += 1
                if or_idle and looks % 100 == 0 and not await self.dispatch.backlog():
                    return False  # seldom looked at, because each look opens a connection
                await asyncio.sleep(0.005)
        return True


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
    for process in fleet.workers:
        os.kill(fleet.pids[process], signal.SIGKILL)
        await process.wait()


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


async def storm(fleet: Fleet, *, sessions: int, kills: int, seed: int) -> Counter[str]:
    chance = random.Random(seed)
    made = [await fleet.create(f"s{number}") for number in range(sessions)]
    replacing = asyncio.create_task(fleet.add_worker(*STORM))
    for _ in range(kills):
        wanted = sum(fleet.effects().values()) + chance.randint(1, 3)
        while not await fleet.until_effects(wanted, or_idle=True):
            made += [await fleet.create(f"s{len(made) + number}") for number in range(10)]
        await replacing  # the others work while it starts
        await fleet.kill(chance.choice(fleet.workers))
        replacing = asyncio.create_task(fleet.add_worker(*STORM))
    await replacing
    await fleet.until_idle()
    return await check(fleet, made)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kills", [15, pytest.param(200, marks=pytest.mark.soak)])
async def test_killed_workers_lose_nothing_and_repeat_nothing(
    postgres_databases: "Databases", tmp_path: Path, kills: int
) -> None:
    async with fleet(postgres_databases, tmp_path, workers=2, options=STORM) as opened:
        ends = await storm(opened, sessions=kills // 3, kills=kills, seed=1)
    assert ends["ok"] > 0
    assert ends["unknown"] > 0, "no kill hit a call"


@pytest.mark.soak
async def test_a_thousand_kills_lose_nothing_and_repeat_nothing(
    postgres_databases: "Databases", tmp_path: Path
) -> None:
    async with fleet(postgres_databases, tmp_path, workers=2, options=STORM) as opened:
        ends = await storm(opened, sessions=200, kills=1000, seed=2)
    print(dict(ends))
    assert ends["ok"] > 0


@pytest.mark.timeout(400)
async def test_a_worker_that_was_stopped_and_wakes_up_writes_nothing(
    postgres_databases: "Databases", tmp_path: Path
) -> None:
    async with fleet(postgres_databases, tmp_path, workers=1) as opened:
        (sleeper,) = opened.workers
        sessions = [await opened.create(f"s{number}") for number in range(3)]
        await opened.until_effects(2)
        os.kill(opened.pids[sleeper], signal.SIGSTOP)
        await opened.add_worker()
        await opened.until_idle()
        os.kill(opened.pids[sleeper], signal.SIGCONT)
        os.kill(opened.pids[sleeper], signal.SIGTERM)
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
        os.kill(opened.pids[first], signal.SIGTERM)
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
        await opened.until_effects(2 * TURNS * len(old))
        assert not [line for line in opened.effects() if line.startswith("new")]
        assert await opened.dispatch.failed() == 0
        await opened.add_worker()
        await opened.until_idle()
        await check(opened, [*old, *new])
        assert not any(summary.is_damaged for summary in await opened.store.sessions())
