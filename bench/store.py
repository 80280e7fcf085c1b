"""Durable sessions against the stores of other frameworks and against the disk itself, in one run.

Peers (pip requirement lines):
    openai-agents
    langgraph-checkpoint-sqlite
    google-adk
    aiosqlite
A turn is a question, a call, its result and an answer, about 4 KB, on disk before it is acknowledged. The baseline is
one append of the same bytes to a plain file with fsync, and with fdatasync, which writes less metadata.
BENCH_STORE_SCALE (default 1) makes everything smaller.
"""

import asyncio
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from bench._store_peers import PEERS, TURN, MeasuredStore
from holdfast.core import PERSON, ModelMessage, SessionId, SystemClock, TextPart, ToolCallPart, Usage
from holdfast.core.events import (
    CallSettled,
    Event,
    MessagePosted,
    ModelReplied,
    SessionOpened,
)
from holdfast.core.ids import CallId
from holdfast.store import Home, Journal, open_store

SCALE = float(os.environ.get("BENCH_STORE_SCALE", "1"))
LENGTHS = (10, 1_000, 10_000)
AT_ONCE = 50
IN_A_ROW = 10
"""How many appends one store makes before the next: alternating single appends would measure cache misses."""
OPENED = SessionOpened(principal=PERSON, folder="/", workspace="/", policy="p", policy_digest="", model="m")


class HoldfastStore:
    """Holdfast's SQLite store."""

    name = "holdfast"
    longest = 10_000
    most_sessions = 100_000
    rounds = 200
    at_once = 200

    async def start(self, folder: Path) -> None:
        self._store = await open_store(Home(folder), clock=SystemClock())
        self._journals: dict[str, Journal] = {}

    async def create(self, session: str) -> None:
        self._journals[session] = await self._store.create(OPENED, session=SessionId(session))

    async def append(self, session: str, turns: int = 1) -> None:
        events = [event for _ in range(turns) for event in turn_events()]
        await self._journals[session].append(*events)

    async def load(self, session: str) -> int:
        return len(await self._store.read(SessionId(session)))

    async def list_newest(self, limit: int) -> int:
        return len(await self._store.sessions(limit=limit))

    async def fork(self, session: str, messages: int) -> None:
        await self._store.fork(SessionId(session), at=messages, opened=OPENED)

    async def close(self) -> None:
        await self._store.close()

    async def search(self, word: str) -> int:
        return len(await self._store.search(word))


def turn_events() -> tuple[Event, ...]:
    """One turn of about 4 KB, as four events."""
    question, call, result, answer = TURN
    part = ToolCallPart(id="1", tool="read", arguments={"path": call})
    return (
        MessagePosted(turn=1, text=question, principal=PERSON),
        ModelReplied(turn=1, step=1, model="m", message=ModelMessage(parts=(part,)), usage=Usage()),
        CallSettled(call=CallId("1.1"), status="ok", result=result),
        ModelReplied(
            turn=1, step=2, model="m", message=ModelMessage(parts=(TextPart(text=answer),)), usage=Usage()
        ),
    )


Table = dict[str, dict[str, str]]
"""Figures by row and by store."""


def main() -> None:
    """Measure all stores, interleaved, and print one table."""
    if sys.argv[1:2] == ["worker"]:
        asyncio.run(_worker(*sys.argv[2:5]))
        return
    folder = Path(tempfile.mkdtemp(prefix="bench-store-", dir=os.environ.get("BENCH_FOLDER")))
    table: Table = {}
    try:
        stores = asyncio.run(_measure(folder, table))
        for name in (store.name for store in stores):
            table.setdefault("turns/s, 50 sessions, 4 processes", {})[name] = _processes(
                name, folder / name / "four"
            )
        _print(table, [store.name for store in stores])
    finally:
        shutil.rmtree(folder)


class Disk:
    """The baseline: the same bytes appended to a plain file, on disk before it returns."""

    def __init__(self, path: Path, sync: Callable[[int], None]) -> None:
        self.name = sync.__name__
        self._sync = sync
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._content = "".join(TURN).encode() + b"\n"

    def append(self) -> float:
        """Append one turn and return the seconds."""
        started = time.perf_counter()
        os.write(self._descriptor, self._content)
        self._sync(self._descriptor)
        return time.perf_counter() - started


async def _measure(folder: Path, table: Table) -> list[MeasuredStore]:
    disks = [Disk(folder / sync.__name__, sync) for sync in (os.fsync, os.fdatasync)]
    stores = await _start_installed([make() for make in (HoldfastStore, *PEERS)], folder, "lengths")
    for length in LENGTHS:
        able = [store for store in stores if length <= store.longest]
        for store in able:
            await _fill(store, f"long-{length}", int(length * min(SCALE, 1)))
        await _appends(able, length, disks, table)
        await _medians(able, f"load {length} messages, ms", 15, table, partial(_load, f"long-{length}"))
    messages = int(1000 * min(SCALE, 1))
    await _medians(stores, "fork at 1000, ms", 5, table, lambda one, _: one.fork("long-1000", messages))
    creating = [store for store in stores if store.most_sessions]
    await _medians(
        creating,
        "create a session, ms",
        200,
        table,
        lambda one, n: one.create(f"created-{n}"),
        in_a_row=IN_A_ROW,
    )
    ours = next(store for store in stores if isinstance(store, HoldfastStore))
    await ours.search("warm")
    await _medians([ours], "search, ms", 5, table, lambda _, n: ours.search("quartz"))
    for store in stores:
        await store.close()
    for store in stores:
        line = table.setdefault("MB on disk for 1000 messages", {})
        line[store.name] = await _bytes(store, folder / store.name / "bytes", messages)
    await _lists(creating, folder, table)
    for store in stores:
        line = table.setdefault("turns/s, 50 sessions, 1 process", {})
        line[store.name] = await _concurrent_turns(store, folder / store.name / "once")
    return stores


async def _bytes(store: MeasuredStore, folder: Path, messages: int) -> str:
    await store.start(folder)
    await store.create("counted")
    for _ in range(max(messages // 4, 1)):
        await store.append("counted")
    await store.close()
    return f"{_size(folder) / 1e6:.2f}"


async def _load(session: str, store: MeasuredStore, _: int) -> None:
    await store.load(session)


async def _start_installed(stores: list[MeasuredStore], folder: Path, name: str) -> list[MeasuredStore]:
    started = []
    for store in stores:
        try:
            await store.start(folder / store.name / name)
            started.append(store)
        except ImportError:
            print(f"{store.name}: not installed")
    return started


async def _fill(store: MeasuredStore, session: str, messages: int) -> None:
    await store.create(session)
    turns = max(messages // 4, 1)
    for started in range(0, turns, 50):
        await store.append(session, min(50, turns - started))


async def _appends(stores: list[MeasuredStore], length: int, disks: list[Disk], table: Table) -> None:
    times: dict[str, list[float]] = {store.name: [] for store in stores}
    limits: dict[str, list[float]] = {disk.name: [] for disk in disks}
    for _ in range(12):
        for disk in disks:
            limits[disk.name] += [disk.append() for _ in range(IN_A_ROW)]
        for store in stores:
            for _ in range(IN_A_ROW):
                started = time.perf_counter()
                await store.append(f"long-{length}")
                times[store.name].append(time.perf_counter() - started)
    line = f"append a turn at {length} messages"
    table[f"{line}, ms"] = {name: f"{statistics.median(taken) * 1000:.2f}" for name, taken in times.items()}
    for sync, spent in limits.items():
        limit = statistics.median(spent)
        table[f"{line}, times a raw append with {sync} ({limit * 1000:.2f} ms)"] = {
            name: f"{statistics.median(taken) / limit:.1f}" for name, taken in times.items()
        }


async def _medians(
    stores: Sequence[MeasuredStore],
    line: str,
    count: int,
    table: Table,
    work: Callable[[MeasuredStore, int], Awaitable[object]],
    *,
    in_a_row: int = 1,
) -> None:
    # Interleaved, so that load on the machine affects all of them alike.
    times: dict[str, list[float]] = {store.name: [] for store in stores}
    for first in range(0, count, in_a_row):
        for store in stores:
            for number in range(first, first + in_a_row):
                started = time.perf_counter()
                await work(store, number)
                times[store.name].append(time.perf_counter() - started)
    table[line] = {name: f"{statistics.median(taken) * 1000:.2f}" for name, taken in times.items()}


async def _lists(stores: list[MeasuredStore], folder: Path, table: Table) -> None:
    await _start_installed(stores, folder, "lists")
    made = dict.fromkeys((store.name for store in stores), 0)
    for count in (100, 10_000, 100_000):
        able = [store for store in stores if count <= store.most_sessions]
        for store in able:
            while made[store.name] < int(count * min(SCALE, 1)):
                batch = range(made[store.name], min(made[store.name] + store.at_once, count))
                await asyncio.gather(*(store.create(f"listed-{number}") for number in batch))
                made[store.name] = batch.stop
        await _medians(able, f"list 50 of {count}, ms", 5, table, lambda one, _: one.list_newest(50))
    for store in stores:
        await store.close()


async def _concurrent_turns(store: MeasuredStore, folder: Path) -> str:
    await store.start(folder)
    names = [f"busy-{number}" for number in range(AT_ONCE)]
    for name in names:
        await store.create(name)
    started = time.perf_counter()
    try:
        turns = await _append_all(store, names)
    except sqlite3.OperationalError as problem:
        return f"fails: {problem}"
    finally:
        await store.close()
    return f"{turns / (time.perf_counter() - started):.0f}"


async def _append_all(store: MeasuredStore, names: Sequence[str]) -> int:
    rounds = max(int(store.rounds * SCALE), 2)

    async def append_one(name: str) -> None:
        for _ in range(rounds):
            await store.append(name)

    await asyncio.gather(*(append_one(name) for name in names))
    return len(names) * rounds


def _processes(name: str, folder: Path) -> str:
    command = [sys.executable, "-m", "bench.store", "worker", name, str(folder)]
    workers = [
        subprocess.Popen(
            [*command, str(number)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        for number in range(4)
    ]
    for worker in workers:
        assert worker.stdout is not None
        worker.stdout.readline()  # ready
    started = time.perf_counter()
    for worker in workers:  # start all of them before waiting for the first
        assert worker.stdin is not None
        worker.stdin.write(b"go\n")
        worker.stdin.flush()
    done = [int(worker.communicate()[0] or b"0") for worker in workers]
    return f"{sum(done) / (time.perf_counter() - started):.0f}" if all(done) else "fails: locked"


async def _worker(name: str, folder: str, number: str) -> None:
    store: MeasuredStore = next(make() for make in (HoldfastStore, *PEERS) if make.name == name)
    await store.start(Path(folder))
    names = [f"busy-{number}-{index}" for index in range(AT_ONCE // 4)]
    for session in names:
        await store.create(session)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    turns = await _append_all(store, names)
    await store.close()
    print(turns, flush=True)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _print(table: Table, names: list[str]) -> None:
    width = max(map(len, table)) + 2
    print(" " * width + "".join(f"{name:>24}" for name in names))
    for line, figures in table.items():
        mine = float(figures[HoldfastStore.name])
        cells = []
        for name in names:
            figure = figures.get(name, "-")
            has_ratio = name != HoldfastStore.name and mine > 0 and figure[0].isdigit()
            cells.append(f"{figure} ({float(figure) / mine:.1f}x)" if has_ratio else figure)
        print(f"{line:<{width}}" + "".join(f"{cell:>24}" for cell in cells))


if __name__ == "__main__":
    main()
