"""Durable sessions against the stores of other frameworks and against the disk itself, in one run.

Peers, in one run with us (pip requirement lines):
    openai-agents
    langgraph-checkpoint-sqlite
    google-adk
    aiosqlite
A turn is a question, a call, its result and an answer, about 4 KB, on the disk before it is acknowledged. The limit is one
append of the same bytes to a plain file with fsync, and with fdatasync, which writes down less about the file. BENCH_STORE_SCALE (1 unless said) makes everything smaller.
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

from bench._store_peers import PEERS, TURN, Subject
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
"""So many appends before it is another's turn: one at a time would measure how the others' code drives ours out of the caches."""
OPENED = SessionOpened(principal=PERSON, folder="/", workspace="/", policy="p", policy_digest="", model="m")


class Ours:
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
"""Line, then subject, then figure."""


def main() -> None:
    """Measure everybody, turn and turn about, and print one table."""
    if sys.argv[1:2] == ["worker"]:
        asyncio.run(_worker(*sys.argv[2:5]))
        return
    folder = Path(tempfile.mkdtemp(prefix="bench-store-", dir=os.environ.get("BENCH_FOLDER")))
    table: Table = {}
    try:
        subjects = asyncio.run(_measure(folder, table))
        for name in (subject.name for subject in subjects):
            table.setdefault("turns/s, 50 sessions, 4 processes", {})[name] = _processes(
                name, folder / name / "four"
            )
        _print(table, [subject.name for subject in subjects])
    finally:
        shutil.rmtree(folder)


class Disk:
    """The limit: the same bytes appended to a plain file, on the disk before it returns."""

    def __init__(self, path: Path, sync: Callable[[int], None]) -> None:
        self.name = sync.__name__
        self._sync = sync
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._content = "".join(TURN).encode() + b"\n"

    def append(self) -> float:
        """Seconds for one turn."""
        begin = time.perf_counter()
        os.write(self._descriptor, self._content)
        self._sync(self._descriptor)
        return time.perf_counter() - begin


async def _measure(folder: Path, table: Table) -> list[Subject]:
    disks = [Disk(folder / sync.__name__, sync) for sync in (os.fsync, os.fdatasync)]
    subjects = await _started([make() for make in (Ours, *PEERS)], folder, "lengths")
    for length in LENGTHS:
        able = [subject for subject in subjects if length <= subject.longest]
        for subject in able:
            await _fill(subject, f"long-{length}", int(length * min(SCALE, 1)))
        await _appends(able, length, disks, table)
        await _medians(able, f"load {length} messages, ms", 15, table, partial(_load, f"long-{length}"))
    messages = int(1000 * min(SCALE, 1))
    await _medians(subjects, "fork at 1000, ms", 5, table, lambda one, _: one.fork("long-1000", messages))
    creating = [subject for subject in subjects if subject.most_sessions]
    await _medians(
        creating,
        "create a session, ms",
        200,
        table,
        lambda one, n: one.create(f"created-{n}"),
        in_a_row=IN_A_ROW,
    )
    ours = next(subject for subject in subjects if isinstance(subject, Ours))
    await ours.search("warm")
    await _medians([ours], "search, ms", 5, table, lambda _, n: ours.search("quartz"))
    for subject in subjects:
        await subject.close()
    for subject in subjects:
        line = table.setdefault("MB on disk for 1000 messages", {})
        line[subject.name] = await _bytes(subject, folder / subject.name / "bytes", messages)
    await _lists(creating, folder, table)
    for subject in subjects:
        line = table.setdefault("turns/s, 50 sessions, 1 process", {})
        line[subject.name] = await _at_once(subject, folder / subject.name / "once")
    return subjects


async def _bytes(subject: Subject, folder: Path, messages: int) -> str:
    await subject.start(folder)
    await subject.create("counted")
    for _ in range(max(messages // 4, 1)):
        await subject.append("counted")
    await subject.close()
    return f"{_size(folder) / 1e6:.2f}"


async def _load(session: str, subject: Subject, _: int) -> None:
    await subject.load(session)


async def _started(subjects: list[Subject], folder: Path, name: str) -> list[Subject]:
    started = []
    for subject in subjects:
        try:
            await subject.start(folder / subject.name / name)
            started.append(subject)
        except ImportError:
            print(f"{subject.name}: not installed")
    return started


async def _fill(subject: Subject, session: str, messages: int) -> None:
    await subject.create(session)
    turns = max(messages // 4, 1)
    for begin in range(0, turns, 50):
        await subject.append(session, min(50, turns - begin))


async def _appends(subjects: list[Subject], length: int, disks: list[Disk], table: Table) -> None:
    times: dict[str, list[float]] = {subject.name: [] for subject in subjects}
    limits: dict[str, list[float]] = {disk.name: [] for disk in disks}
    for _ in range(12):
        for disk in disks:
            limits[disk.name] += [disk.append() for _ in range(IN_A_ROW)]
        for subject in subjects:
            for _ in range(IN_A_ROW):
                begin = time.perf_counter()
                await subject.append(f"long-{length}")
                times[subject.name].append(time.perf_counter() - begin)
    line = f"append a turn at {length} messages"
    table[f"{line}, ms"] = {name: f"{statistics.median(taken) * 1000:.2f}" for name, taken in times.items()}
    for sync, spent in limits.items():
        limit = statistics.median(spent)
        table[f"{line}, times a raw append with {sync} ({limit * 1000:.2f} ms)"] = {
            name: f"{statistics.median(taken) / limit:.1f}" for name, taken in times.items()
        }


async def _medians(
    subjects: Sequence[Subject],
    line: str,
    count: int,
    table: Table,
    work: Callable[[Subject, int], Awaitable[object]],
    *,
    in_a_row: int = 1,
) -> None:
    # Turn and turn about: a busy machine is then as busy for the one as for the other.
    times: dict[str, list[float]] = {subject.name: [] for subject in subjects}
    for first in range(0, count, in_a_row):
        for subject in subjects:
            for number in range(first, first + in_a_row):
                begin = time.perf_counter()
                await work(subject, number)
                times[subject.name].append(time.perf_counter() - begin)
    table[line] = {name: f"{statistics.median(taken) * 1000:.2f}" for name, taken in times.items()}


async def _lists(subjects: list[Subject], folder: Path, table: Table) -> None:
    await _started(subjects, folder, "lists")
    made = dict.fromkeys((subject.name for subject in subjects), 0)
    for count in (100, 10_000, 100_000):
        able = [subject for subject in subjects if count <= subject.most_sessions]
        for subject in able:
            while made[subject.name] < int(count * min(SCALE, 1)):
                batch = range(made[subject.name], min(made[subject.name] + subject.at_once, count))
                await asyncio.gather(*(subject.create(f"listed-{number}") for number in batch))
                made[subject.name] = batch.stop
        await _medians(able, f"list 50 of {count}, ms", 5, table, lambda one, _: one.list_newest(50))
    for subject in subjects:
        await subject.close()


async def _at_once(subject: Subject, folder: Path) -> str:
    await subject.start(folder)
    names = [f"busy-{number}" for number in range(AT_ONCE)]
    for name in names:
        await subject.create(name)
    begin = time.perf_counter()
    try:
        turns = await _talk(subject, names)
    except sqlite3.OperationalError as problem:
        return f"fails: {problem}"
    finally:
        await subject.close()
    return f"{turns / (time.perf_counter() - begin):.0f}"


async def _talk(subject: Subject, names: Sequence[str]) -> int:
    rounds = max(int(subject.rounds * SCALE), 2)

    async def talk(name: str) -> None:
        for _ in range(rounds):
            await subject.append(name)

    await asyncio.gather(*(talk(name) for name in names))
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
    begin = time.perf_counter()
    for worker in workers:  # all of them before the first is waited for
        assert worker.stdin is not None
        worker.stdin.write(b"go\n")
        worker.stdin.flush()
    done = [int(worker.communicate()[0] or b"0") for worker in workers]
    return f"{sum(done) / (time.perf_counter() - begin):.0f}" if all(done) else "fails: locked"


async def _worker(name: str, folder: str, number: str) -> None:
    subject: Subject = next(make() for make in (Ours, *PEERS) if make.name == name)
    await subject.start(Path(folder))
    names = [f"busy-{number}-{index}" for index in range(AT_ONCE // 4)]
    for session in names:
        await subject.create(session)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    turns = await _talk(subject, names)
    await subject.close()
    print(turns, flush=True)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _print(table: Table, names: list[str]) -> None:
    width = max(map(len, table)) + 2
    print(" " * width + "".join(f"{name:>24}" for name in names))
    for line, figures in table.items():
        mine = float(figures[Ours.name])
        cells = []
        for name in names:
            figure = figures.get(name, "-")
            has_ratio = name != Ours.name and mine > 0 and figure[0].isdigit()
            cells.append(f"{figure} ({float(figure) / mine:.1f}x)" if has_ratio else figure)
        print(f"{line:<{width}}" + "".join(f"{cell:>24}" for cell in cells))


if __name__ == "__main__":
    main()
