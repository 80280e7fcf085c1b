"""The database restarts or is cut off in the middle of turns: sessions go on, and nothing is lost or repeated."""

import asyncio
import os
import signal
import tempfile
from pathlib import Path

import pytest
from tests.support.postgres import Databases, Server
from tests.worker.black_hole import BlackHole
from tests.worker.test_storms import PATIENCE_SECONDS, check, fleet


@pytest.fixture
def short_folder() -> Path:
    """A folder whose path is short enough for a socket. The server removes it."""
    return Path(tempfile.mkdtemp(prefix="holdfast-postgres-"))


pytestmark = pytest.mark.timeout(400)


async def test_a_restart_of_postgresql_in_mid_turn_loses_nothing(tmp_path: Path, short_folder: Path) -> None:
    server = Server(short_folder)
    await asyncio.to_thread(server.create)
    await asyncio.to_thread(server.start)
    try:
        async with fleet(Databases(server.url(), owner="restart"), tmp_path, workers=2) as opened:
            sessions = [await opened.create(f"s{number}") for number in range(4)]
            await opened.until_effects(2)
            await asyncio.to_thread(server.stop)  # as in a crash: without a checkpoint, connections cut
            await asyncio.to_thread(server.start)
            late = await opened.create("late")  # posted after the restart
            await opened.until_idle()
            await check(opened, [*sessions, late])
    finally:
        await asyncio.to_thread(server.remove)


async def test_a_worker_that_is_cut_off_is_replaced_and_writes_nothing_when_it_is_back(
    postgres_databases: Databases, tmp_path: Path
) -> None:
    async with fleet(postgres_databases, tmp_path, workers=0) as opened, BlackHole(opened.url) as hole:
        cut_off = await opened.add_worker(url=hole.url)
        sessions = [await opened.create(f"s{number}") for number in range(3)]
        await opened.until_effects(2)
        hole.swallow()
        await opened.add_worker()
        await opened.until_idle()
        hole.let_through()
        os.kill(opened.pids[cut_off], signal.SIGTERM)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await cut_off.wait()
        opened.workers.remove(cut_off)
        await check(opened, sessions)
