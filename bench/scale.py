"""Sessions in PostgreSQL: what an append, a turn and a job cost, against the same bytes synced to a file and against SQLite.

The server comes from the wheel and syncs every commit. All variants alternate in one run, so that load on the machine affects
all of them alike. `HOLDFAST_TEST_POSTGRES=URL` measures another server.
"""

import asyncio
import os
import statistics
import tempfile
import time
from pathlib import Path

from tests.support.postgres import Databases, Server

from bench.turn import ALLOW, InstantModel
from holdfast.app import Runtime
from holdfast.core import PERSON, SessionId, SystemClock
from holdfast.core.events import MessagePosted, SessionOpened
from holdfast.session import Settings
from holdfast.store import Home, Journal, WorkStore, open_store, open_work_store
from holdfast.worker import install_dispatch, open_dispatch

ROUNDS = 300
AT_ONCE = 50
OPENED = SessionOpened(principal=PERSON, folder="/", workspace="/", policy="p", policy_digest="", model="m")
SAID = MessagePosted(turn=1, text="x" * 150, principal=PERSON)


def main() -> None:
    """Measure, and print one line for each figure."""
    with tempfile.TemporaryDirectory(prefix="bench-scale-", dir=os.environ.get("BENCH_FOLDER")) as folder:
        Path(folder).chmod(0o755)
        given = os.environ.get("HOLDFAST_TEST_POSTGRES")
        server = None if given else Server(Path(folder) / "pg", is_fast=False)
        try:
            if server is not None:
                server.create()
                server.start()
            asyncio.run(_measure(Path(folder), given or (server.url() if server else "")))
        finally:
            if server is not None:
                server.remove()


async def _measure(folder: Path, url: str) -> None:
    databases = Databases(url, owner="bench")
    address = await databases.take()
    await install_dispatch(address)
    shared = await open_work_store(Home(folder / "shared"), address, clock=SystemClock())
    local = await open_store(Home(folder / "local"), clock=SystemClock())
    try:
        await _appends(folder, await shared.create(OPENED), await local.create(OPENED))
        await _grouped(shared)
        await _turns(folder, shared)
        await _jobs(shared, address)
    finally:
        await local.close()
        await shared.close()
        await databases.drop()


async def _appends(folder: Path, shared: Journal, local: Journal) -> None:
    times: dict[str, list[float]] = {"fdatasync": [], "SQLite": [], "PostgreSQL": []}
    file = os.open(folder / "raw", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for _ in range(ROUNDS):
        start = time.perf_counter()
        os.write(file, b"x" * 400)
        os.fdatasync(file)
        times["fdatasync"].append(time.perf_counter() - start)
        for name, journal in (("SQLite", local), ("PostgreSQL", shared)):
            start = time.perf_counter()
            await journal.append(SAID)
            times[name].append(time.perf_counter() - start)
    os.close(file)
    raw = statistics.median(times["fdatasync"])
    for name, values in times.items():
        middle = statistics.median(values)
        print(f"append, {name}: {middle * 1e3:.2f} ms, {middle / raw:.1f} x fdatasync", flush=True)


async def _grouped(store: WorkStore) -> None:
    journals = [await store.create(OPENED) for _ in range(AT_ONCE)]

    async def write(journal: Journal) -> None:
        for _ in range(40):
            await journal.append(SAID)

    start = time.perf_counter()
    await asyncio.gather(*map(write, journals))
    print(f"appends/s, {AT_ONCE} sessions, one process: {AT_ONCE * 40 / (time.perf_counter() - start):.0f}")


async def _turns(folder: Path, store: WorkStore) -> None:
    settings = Settings(acts_with="tools", restore_points="never")
    runtime = await Runtime.start(home=folder / "runtime", settings=settings, store=store, servers=())
    sessions = [await runtime.create(model=InstantModel(), policy=ALLOW) for _ in range(AT_ONCE)]
    times: list[float] = []
    for _ in range(40):
        start = time.perf_counter()
        await sessions[0].send("go on")
        times.append(time.perf_counter() - start)
    print(f"whole turn with one call, one session: {statistics.median(times) * 1e3:.1f} ms")
    start, used = time.perf_counter(), time.process_time()
    for _ in range(4):
        await asyncio.gather(*(session.send("go on") for session in sessions))
    passed, spent = time.perf_counter() - start, time.process_time() - used
    count = 4 * AT_ONCE
    print(
        f"turns/s, {AT_ONCE} sessions, one process: {count / passed:.0f}, {spent / count * 1e3:.2f} ms of CPU each"
    )
    for session in sessions:
        await session.close()


async def _jobs(store: WorkStore, url: str) -> None:
    dispatch = open_dispatch(url)
    heard: asyncio.Queue[SessionId] = asyncio.Queue()
    stop = asyncio.Event()
    running = asyncio.create_task(dispatch.run(heard.put, places=50, stop=stop))
    await store.in_transaction(lambda transaction: dispatch.post(transaction, SessionId("warm")))
    await heard.get()
    times: list[float] = []
    for _ in range(50):
        start = time.perf_counter()
        await store.in_transaction(lambda transaction: dispatch.post(transaction, SessionId("s")))
        await heard.get()
        times.append(time.perf_counter() - start)
    print(f"posted to handled: {statistics.median(times) * 1e3:.1f} ms, at most {max(times) * 1e3:.0f} ms")
    stop.set()
    await running
