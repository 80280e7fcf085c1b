"""Engines under failure: a job of a worker that was killed is given to another one, and missing tables are reported."""

import asyncio
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import TYPE_CHECKING

import asyncpg
import pytest
from tests.store.sample_events import opened, said, turn
from tests.support.fork_server import forked_python
from tests.support.postgres import Databases
from tests.worker.test_storms import STORM, fleet, storm

from holdfast.core import SessionId, SystemClock
from holdfast.core.errors import EngineMissing, InvalidInput, StoreUnavailable
from holdfast.store import Home, engine_of, open_work_store, store_status
from holdfast.worker import ENGINES, Dispatch, find_dispatch, install_dispatch, open_dispatch, post_message

if TYPE_CHECKING:
    from holdfast.store import WorkStore

PROGRAM = Path(__file__).with_name("taker_main.py")
PATIENCE_SECONDS = 120
HEARTBEAT_SECONDS = 2.0
pytestmark = pytest.mark.timeout(400)
A = SessionId("a")


async def post(store: "WorkStore", dispatch: Dispatch, session: SessionId) -> None:
    await store.in_transaction(lambda transaction: dispatch.post(transaction, [session]))


async def done_by(dispatch: Dispatch, count: int) -> list[SessionId]:
    """Run the jobs that there are, until so many are done."""
    done: list[SessionId] = []
    is_done, stop = asyncio.Event(), asyncio.Event()

    async def handle(session: SessionId) -> None:
        done.append(session)
        if len(done) >= count:
            is_done.set()

    running = asyncio.create_task(dispatch.run(handle, places=2, stop=stop))
    async with asyncio.timeout(PATIENCE_SECONDS):
        await is_done.wait()
        stop.set()
        await running
    return done


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_job_of_a_killed_worker_is_given_to_another_one_by_itself(
    postgres_databases: Databases, tmp_path: Path, engine: str
) -> None:
    url = await postgres_databases.take()
    await install_dispatch(url, engine=engine)
    store = await open_work_store(Home(tmp_path), url, clock=SystemClock())
    dispatch = open_dispatch(url, engine=engine, heartbeat_seconds=HEARTBEAT_SECONDS)
    taker = await asyncio.create_subprocess_exec(*forked_python(str(PROGRAM), url, engine), stdout=PIPE)
    try:
        await post(store, dispatch, A)
        assert taker.stdout is not None
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert (await taker.stdout.readline()).strip() == b"a"
        assert [each.running for each in await dispatch.queues()] == [1]
        taker.kill()
        assert set(await done_by(dispatch, 1)) == {A}
        assert await dispatch.backlog() == 0
    finally:
        if taker.returncode is None:
            taker.kill()
        await taker.wait()
        await store.close()
        postgres_databases.give_back(url)


async def test_the_store_says_which_engine_carries_its_jobs_and_none_is_left_behind(
    postgres_databases: Databases, tmp_path: Path
) -> None:
    url = await postgres_databases.take()
    try:
        await install_dispatch(url)
        assert await engine_of(url) == "pgqueuer"
        store = await open_work_store(Home(tmp_path), url, clock=SystemClock())
        dispatch = await find_dispatch(url)
        await post(store, dispatch, A)
        with pytest.raises(InvalidInput, match="jobs wait"):
            await install_dispatch(url, engine="procrastinate")
        await dispatch.cancel(A)
        assert await install_dispatch(url, engine="procrastinate")
        assert (await engine_of(url), (await store_status(url)).engine) == ("procrastinate",) * 2
        await store.close()
        again = await open_work_store(Home(tmp_path), url, clock=SystemClock())
        assert again.engine == "procrastinate"
        await again.close()
        with pytest.raises((InvalidInput, EngineMissing)):
            open_dispatch(url, engine="another")
    finally:
        postgres_databases.give_back(url)


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_worker_whose_queue_has_no_tables_says_so(postgres_databases: Databases, engine: str) -> None:
    url = await postgres_databases.take_blank()
    dispatch = open_dispatch(url, engine=engine)
    async with asyncio.timeout(PATIENCE_SECONDS):
        with pytest.raises(StoreUnavailable, match="queue has no tables"):
            await dispatch.run(lambda _: asyncio.sleep(0), places=2, stop=asyncio.Event())


async def test_a_worker_starts_without_reading_the_types_of_the_database(
    postgres_databases: Databases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[object] = []
    ordinary = asyncpg.Connection._introspect_types

    async def recorded(connection: asyncpg.Connection, types: object, *more: object) -> object:
        read.append(types)
        return await ordinary(connection, types, *more)

    monkeypatch.setattr(asyncpg.Connection, "_introspect_types", recorded)
    url = await postgres_databases.take()
    store = await open_work_store(Home(tmp_path), url, clock=SystemClock())
    journal = await store.create(opened())
    await journal.append(*turn(1), said(2, "xylophone"))
    await store.search("xylophone")
    await journal.release()
    dispatch = open_dispatch(url)
    await post_message(store, dispatch, journal.session, "hello")
    await done_by(dispatch, 1)
    await store.close()
    postgres_databases.give_back(url)
    assert read == []


def test_a_job_is_given_again_only_after_its_lease_is_free() -> None:
    from holdfast.store.postgres.presence import PRESENCE_SECONDS
    from holdfast.worker import pgqueuer_dispatch, procrastinate_dispatch

    for engine in (pgqueuer_dispatch, procrastinate_dispatch):
        assert engine.HEARTBEAT_SECONDS >= PRESENCE_SECONDS + 2, "else the next worker finds the session held"


@pytest.mark.soak
async def test_killed_workers_of_the_second_engine_lose_nothing(
    postgres_databases: Databases, tmp_path: Path
) -> None:
    async with fleet(
        postgres_databases, tmp_path, workers=3, engine="procrastinate", options=STORM
    ) as opened:
        ends = await storm(opened, kills=100, seed=3)
    assert ends["ok"] > 0
