"""The database restarts or is cut off in the middle of turns: sessions go on, and nothing is lost or repeated."""

import asyncio
import os
import shutil
import signal
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg
import pytest
from tests.store.sample_events import opened as session_opened
from tests.store.sample_events import said
from tests.support.postgres import Databases, Server, SmallDiskServer
from tests.worker.black_hole import BlackHole
from tests.worker.cable import SERVER, Cable, NetworkServer
from tests.worker.test_storms import PATIENCE_SECONDS, check, fleet

from holdfast.core import SystemClock
from holdfast.core.errors import StoreUnavailable
from holdfast.services.doctor.shared_store import check_store
from holdfast.store import Home, Journal, open_work_store, store_status
from holdfast.worker import ENGINES


@pytest.fixture
def short_folder() -> Path:
    """A folder whose path is short enough for a socket. The server removes it."""
    return Path(tempfile.mkdtemp(prefix="holdfast-postgres-"))


pytestmark = pytest.mark.timeout(400)


async def test_a_restart_of_postgresql_in_mid_turn_loses_nothing_with_any_engine(
    tmp_path: Path, short_folder: Path
) -> None:
    server = Server(short_folder)
    await asyncio.to_thread(server.create)
    await asyncio.to_thread(server.start)
    databases = Databases(server.url(), owner="restart")
    try:
        async with AsyncExitStack() as stack:
            fleets = [
                await stack.enter_async_context(fleet(databases, tmp_path / engine, workers=2, engine=engine))
                for engine in ENGINES
            ]
            sessions = [[await each.create(f"s{number}") for number in range(2)] for each in fleets]
            for each in fleets:
                await each.until_effects(1)
            await asyncio.to_thread(server.stop)  # as in a crash: without a checkpoint, connections cut
            await asyncio.to_thread(server.start)
            for each, made in zip(fleets, sessions, strict=True):
                made.append(await each.create("late"))  # posted after the restart
                await each.until_idle()
                await check(each, made)
    finally:
        await asyncio.to_thread(server.remove)


@pytest.mark.parametrize("engine", ["pgqueuer", pytest.param("procrastinate", marks=pytest.mark.soak)])
async def test_a_worker_that_is_cut_off_is_replaced_and_writes_nothing_when_it_is_back(
    postgres_databases: Databases, tmp_path: Path, engine: str
) -> None:
    async with (
        fleet(postgres_databases, tmp_path, workers=0, engine=engine) as opened,
        BlackHole(opened.url) as hole,
    ):
        cut_off = await opened.add_worker(url=hole.url)
        sessions = [await opened.create(f"s{number}") for number in range(3)]
        await opened.until_effects(2)
        hole.swallow()
        await opened.add_worker()
        await opened.until_idle()
        hole.let_through()
        os.kill(cut_off.pid, signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await cut_off.wait()
        opened.workers.remove(cut_off)
        await check(opened, sessions)


@pytest.mark.soak
async def test_a_worker_whose_network_is_cut_is_replaced_and_works_again_when_it_is_back(
    tmp_path: Path, short_folder: Path
) -> None:
    with Cable() as cable:
        server = NetworkServer(short_folder, cable)
        try:
            await asyncio.to_thread(server.create)
            await asyncio.to_thread(server.start)
            async with fleet(Databases(server.url(), owner="cable"), tmp_path, workers=0) as opened:
                remote = f"postgresql://postgres@{SERVER}{urlsplit(opened.url).path}"
                await opened.add_worker(f"--network={cable.worker_namespace}", url=remote)
                sessions = [await opened.create(f"s{number}") for number in range(3)]
                await opened.until_effects(2)
                cable.pull()
                other = await opened.add_worker()
                await opened.until_idle()
                await opened.kill(other)
                cable.plug_in()
                late = await opened.create("late")  # for the one that is back
                await opened.until_idle()
                await check(opened, [*sessions, late])
        finally:
            await asyncio.to_thread(server.remove)


async def test_a_promoted_standby_loses_nothing_and_an_asynchronous_one_is_reported(
    tmp_path: Path, short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    primary = Server(short_folder / "1", settings=("wal_level=replica", "max_wal_senders=4"))
    standby: Server | None = None
    try:
        await asyncio.to_thread(primary.create)
        await asyncio.to_thread(primary.start)
        standby = await asyncio.to_thread(primary.copy, short_folder / "2")
        await asyncio.to_thread(standby.start)
        either = f"{primary.url()},{short_folder}/2/socket&target_session_attrs=primary"
        databases = Databases(either, owner="promotion")
        connection = await asyncpg.connect(primary.url())
        await until_streaming(connection, "async")
        async with fleet(databases, tmp_path, workers=2) as opened:
            assert "asynchronous" in " ".join((await store_status(opened.url)).risks)
            monkeypatch.setenv("HOLDFAST_STORE", opened.url)
            assert any("asynchronous" in each.detail for each in await check_store(opened.runtime.home))
            await connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            await connection.execute("SELECT pg_reload_conf()")
            await until_streaming(connection, "sync")
            await connection.close()
            assert "asynchronous" not in " ".join((await store_status(opened.url)).risks)
            sessions = [await opened.create(f"s{number}") for number in range(4)]
            await opened.until_effects(2)
            await asyncio.to_thread(primary.stop)  # as in a crash, and for good
            connection = await asyncpg.connect(standby.url())
            assert await connection.fetchval("SELECT pg_promote(wait_seconds => 300)")
            await connection.close()
            await opened.until_idle()
            await check(opened, sessions)
    finally:
        await asyncio.to_thread(primary.remove)
        if standby is not None:
            await asyncio.to_thread(standby.remove)
        shutil.rmtree(short_folder, ignore_errors=True)


async def until_streaming(connection: asyncpg.Connection, how: str) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await connection.fetchval("SELECT sync_state FROM pg_stat_replication") != how:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_turns_continue_when_a_full_disk_of_the_database_has_room_again(
    postgres_databases: Databases, tmp_path: Path
) -> None:
    async with fleet(postgres_databases, tmp_path, workers=0) as opened:
        sessions = [await opened.create(f"s{number}") for number in range(4)]
        connection = await asyncpg.connect(opened.url, server_settings={"search_path": "holdfast"})
        await connection.execute(FULL)  # before the workers, which could be done before it otherwise
        for _ in range(2):
            await opened.add_worker()
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await connection.fetchval("SELECT is_called FROM refused"):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await connection.execute(
            "DROP TRIGGER full_disk ON event; DROP FUNCTION refuse; DROP SEQUENCE written, refused"
        )
        await connection.close()
        await opened.until_idle()
        await check(opened, sessions)


FULL = """
CREATE SEQUENCE written;
CREATE SEQUENCE refused;
GRANT USAGE ON SEQUENCE written, refused TO PUBLIC;
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF nextval('written') > 8 THEN
        PERFORM nextval('refused');
        RAISE EXCEPTION 'no space left' USING ERRCODE = '53100';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER full_disk BEFORE INSERT ON event EXECUTE FUNCTION refuse();
"""
"""The server's answer when a table cannot grow, in the middle of the first turns: each has more appends, which follow one another.
The sequences count, because they are not rolled back."""


async def test_a_really_full_disk_of_the_database_loses_nothing(tmp_path: Path, short_folder: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("NO MOUNTS WITHOUT RIGHTS HERE: a disk of the database that is really full was not tried")
    server = SmallDiskServer(short_folder)
    try:
        await asyncio.to_thread(server.create)
        await asyncio.to_thread(server.start)
        url = await Databases(server.url(), owner="full").take()
        connection = await asyncpg.connect(url)
        await connection.execute(f"CREATE TABLESPACE small LOCATION '{server.disk}'")
        await connection.execute("ALTER TABLE holdfast.event SET TABLESPACE small")
        await connection.close()
        ballast = server.disk_from_here / "ballast"
        ballast.write_bytes(bytes(2**21))
        store = await open_work_store(Home(tmp_path / "home"), url, clock=SystemClock())
        journal = await store.create(session_opened())
        written = await until_refused(journal)
        ballast.unlink()
        await journal.append(said(written, "after"))
        assert len(await store.read(journal.session)) == written + 2 == len(journal.recorded)
        assert (await store.verify(journal.session)).is_intact
        assert written > 20
        await store.close()
    finally:
        await asyncio.to_thread(server.remove)


async def until_refused(journal: Journal) -> int:
    """Append until the disk is full. Returns how many events were acknowledged."""
    for number in range(10_000):
        try:
            await journal.append(said(number, f"{number} " + os.urandom(5_000).hex()))
        except StoreUnavailable as problem:
            if "disk" not in str(problem):
                raise
            return number
    raise AssertionError("the disk was never full")
