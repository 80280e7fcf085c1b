"""Engines under failure: a job of a worker that was killed is given to another one, and an outage only delays jobs."""

import asyncio
import tempfile
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.fork_server import forked_python
from tests.support.postgres import Databases, Server
from tests.worker.test_storms import fleet, storm

from holdfast.core import SessionId, SystemClock
from holdfast.core.errors import EngineMissing, InvalidInput
from holdfast.store import Home, engine_of, open_work_store, store_status
from holdfast.worker import ENGINES, Dispatch, find_dispatch, install_dispatch, open_dispatch

if TYPE_CHECKING:
    from holdfast.store import WorkStore

PROGRAM = Path(__file__).with_name("taker_main.py")
PATIENCE_SECONDS = 120
HEARTBEAT_SECONDS = 2.0
pytestmark = pytest.mark.timeout(400)
A, B = SessionId("a"), SessionId("b")


async def post(store: "WorkStore", dispatch: Dispatch, session: SessionId) -> None:
    await store.in_transaction(lambda transaction: dispatch.post(transaction, session))


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


async def test_every_engine_goes_on_after_a_restart_of_postgresql(tmp_path: Path) -> None:
    server = Server(Path(tempfile.mkdtemp(prefix="holdfast-postgres-")))
    await asyncio.to_thread(server.create)
    await asyncio.to_thread(server.start)
    try:
        databases = Databases(server.url(), owner="restart")
        urls = {engine: await databases.take() for engine in ENGINES}
        done: dict[str, list[SessionId]] = {engine: [] for engine in ENGINES}
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            for engine, url in urls.items():
                await install_dispatch(url, engine=engine)
                store = await open_work_store(Home(tmp_path / engine), url, clock=SystemClock())
                dispatch = open_dispatch(url, engine=engine, heartbeat_seconds=HEARTBEAT_SECONDS)
                await post(store, dispatch, A)
                await store.close()

                async def handle(session: SessionId, engine: str = engine) -> None:
                    done[engine].append(session)

                tasks.create_task(dispatch.run(handle, places=2, stop=stop))
            await until_all(done, A)
            await asyncio.to_thread(server.stop)  # as in a crash: connections cut
            await asyncio.to_thread(server.start)
            for engine, url in urls.items():
                store = await open_work_store(Home(tmp_path / engine), url, clock=SystemClock())
                await post(store, open_dispatch(url, engine=engine), B)
                await store.close()
            await until_all(done, B)
            stop.set()
    finally:
        await asyncio.to_thread(server.remove)


async def until_all(done: dict[str, list[SessionId]], session: SessionId) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not all(session in each for each in done.values()):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


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


def test_a_job_is_given_again_only_after_its_lease_is_free() -> None:
    from holdfast.store.postgres.presence import PRESENCE_SECONDS
    from holdfast.worker import pgqueuer_dispatch, procrastinate_dispatch

    for engine in (pgqueuer_dispatch, procrastinate_dispatch):
        assert engine.HEARTBEAT_SECONDS >= PRESENCE_SECONDS + 2, "else the next worker finds the session held"


@pytest.mark.soak
async def test_killed_workers_of_the_second_engine_lose_nothing(
    postgres_databases: Databases, tmp_path: Path
) -> None:
    async with fleet(postgres_databases, tmp_path, workers=3, engine="procrastinate") as opened:
        ends = await storm(opened, sessions=40, kills=100, seed=3)
    assert ends["ok"] > 0
