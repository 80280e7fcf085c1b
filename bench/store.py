"""Durable sessions against the stores of other frameworks and against the disk itself, in one run.

Peers, in one run with us (pip requirement lines):
    openai-agents
    langgraph-checkpoint-sqlite
    google-adk
    aiosqlite
A turn is a question, a call, its result and an answer, about 4 KB, on the disk before it is acknowledged. The limit is one
append of the same bytes to a plain file with fdatasync. BENCH_STORE_SCALE (1 unless said) makes everything smaller.
"""

import asyncio
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench._store_peers import PEERS, TURN, Subject
from holdfast.core import PERSON, ModelMessage, SessionId, SystemClock, TextPart, ToolCallPart, Usage
from holdfast.core.events import (
    AnyEvent,
    CallSettled,
    MessagePosted,
    ModelReplied,
    SessionOpened,
)
from holdfast.core.ids import CallId
from holdfast.store import EmbeddedStore, Home, Journal, search

SCALE = float(os.environ.get("BENCH_STORE_SCALE", "1"))
LENGTHS = (10, 1_000, 10_000)
AT_ONCE = 50
OPENED = SessionOpened(principal=PERSON, folder="/", workspace="/", policy="p", policy_digest="", model="m")


class Ours:
    """Holdfast's embedded store."""

    name = "holdfast"
    longest = 10_000
    most_sessions = 100_000
    rounds = 200
    at_once = 200

    async def start(self, folder: Path) -> None:
        self._store = await EmbeddedStore.start(Home(folder), clock=SystemClock())
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
        return len(await search(self._store, word))


def turn_events() -> tuple[AnyEvent, ...]:
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


def main() -> None:
    """Measure everybody and print one table."""
    if sys.argv[1:2] == ["worker"]:
        asyncio.run(_worker(*sys.argv[2:5]))
        return
    folder = Path(tempfile.mkdtemp(prefix="bench-store-", dir=os.environ.get("BENCH_FOLDER")))
    try:
        disk = Disk(folder / "raw")
        columns: dict[str, dict[str, str]] = {}
        for make in (Ours, *PEERS):
            subject: Subject = make()
            columns[subject.name] = asyncio.run(_measure(subject, folder / subject.name, disk))
            print(f"   {subject.name} measured", file=sys.stderr, flush=True)
        _print(columns)
    finally:
        shutil.rmtree(folder)


class Disk:
    """The limit: the same bytes appended to a plain file, on the disk before it returns."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._content = "".join(TURN).encode() + b"\n"

    def append(self) -> float:
        """Seconds for one turn."""
        begin = time.perf_counter()
        os.write(self._descriptor, self._content)
        os.fdatasync(self._descriptor)
        return time.perf_counter() - begin


async def _measure(subject: Subject, folder: Path, disk: Disk) -> dict[str, str]:
    folder.mkdir()
    try:
        await subject.start(folder / "lengths")
    except ImportError:
        return {"": "not installed"}
    figures: dict[str, str] = {}
    for length in LENGTHS:
        if length > subject.longest:
            continue
        await subject.create(f"long-{length}")
        turns = max(int(length * min(SCALE, 1)) // 4, 1)
        for begin in range(0, turns, 50):
            await subject.append(f"long-{length}", min(50, turns - begin))
        figures |= await _appends(subject, length, disk)
        figures[f"load {length} messages, ms"] = await _median(
            5, lambda length=length: subject.load(f"long-{length}")
        )
    figures["fork at 1000, ms"] = await _median(
        5, lambda: subject.fork("long-1000", int(1000 * min(SCALE, 1)))
    )
    figures["create a session, ms"] = await _create(subject, 40)
    if isinstance(subject, Ours):
        await subject.search("warm")
        figures["search, ms"] = await _median(5, lambda: subject.search("quartz"))
    await subject.close()
    figures["MB on disk for 11000 messages"] = f"{_size(folder / 'lengths') / 1e6:.0f}"
    figures |= await _lists(subject, folder)
    try:
        figures["turns/s, 50 sessions, 1 process"] = f"{await _at_once(subject, folder / 'once'):.0f}"
    except sqlite3.OperationalError as problem:
        figures["turns/s, 50 sessions, 1 process"] = f"fails: {problem}"
    figures["turns/s, 50 sessions, 4 processes"] = _processes(subject, folder / "four")
    return figures


async def _appends(subject: Subject, length: int, disk: Disk) -> dict[str, str]:
    # Turn and turn about: a busy machine is then as busy for the one as for the other.
    theirs, limits = [], []
    for _ in range(60):
        limits.append(disk.append())
        begin = time.perf_counter()
        await subject.append(f"long-{length}")
        theirs.append(time.perf_counter() - begin)
    mine, limit = statistics.median(theirs), statistics.median(limits)
    line = f"append a turn at {length} messages"
    return {f"{line}, ms": f"{mine * 1000:.2f}", f"{line}, times the disk": f"{mine / limit:.1f}"}


async def _lists(subject: Subject, folder: Path) -> dict[str, str]:
    figures: dict[str, str] = {}
    await subject.start(folder / "lists")
    made = 0
    for count in (100, 10_000, 100_000):
        if count > subject.most_sessions:
            continue
        while made < int(count * min(SCALE, 1)):
            batch = range(made, min(made + subject.at_once, count))
            await asyncio.gather(*(subject.create(f"listed-{number}") for number in batch))
            made = batch.stop
        figures[f"list 50 of {count}, ms"] = await _median(5, lambda: subject.list_newest(50))
    await subject.close()
    return figures


async def _create(subject: Subject, count: int) -> str:
    numbers = iter(range(count))
    return await _median(count, lambda: subject.create(f"created-{next(numbers)}"))


async def _median(count: int, work: Callable[[], Awaitable[object]]) -> str:
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        await work()
        times.append(time.perf_counter() - begin)
    return f"{statistics.median(times) * 1000:.2f}"


async def _at_once(subject: Subject, folder: Path) -> float:
    await subject.start(folder)
    names = [f"busy-{os.getpid()}-{number}" for number in range(AT_ONCE)]
    for name in names:
        await subject.create(name)
    rounds = max(int(subject.rounds * SCALE), 2)

    async def talk(name: str) -> None:
        for _ in range(rounds):
            await subject.append(name)

    begin = time.perf_counter()
    await asyncio.gather(*(talk(name) for name in names))
    seconds = time.perf_counter() - begin
    await subject.close()
    return AT_ONCE * rounds / seconds


def _processes(subject: Subject, folder: Path) -> str:
    command = [sys.executable, "-m", "bench.store", "worker", subject.name, str(folder)]
    workers = [
        subprocess.Popen(
            [*command, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        for number in range(4)
    ]
    for worker in workers:
        assert worker.stdout is not None
        worker.stdout.readline()  # ready
    begin = time.perf_counter()
    done = [json.loads(worker.communicate(b"go\n")[0] or b"0") for worker in workers]
    return f"{sum(done) / (time.perf_counter() - begin):.0f}" if all(done) else "fails: locked"


async def _worker(name: str, folder: str, number: str) -> None:
    subject = next(make() for make in (Ours, *PEERS) if make.name == name)
    await subject.start(Path(folder))
    names = [f"busy-{number}-{index}" for index in range(AT_ONCE // 4)]
    for session in names:
        await subject.create(session)
    rounds = max(int(subject.rounds * SCALE), 2)
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)

    async def talk(session: str) -> None:
        for _ in range(rounds):
            await subject.append(session)

    await asyncio.gather(*(talk(session) for session in names))
    await subject.close()
    print(json.dumps(len(names) * rounds), flush=True)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _print(columns: dict[str, dict[str, str]]) -> None:
    lines = list(dict.fromkeys(line for figures in columns.values() for line in figures if line))
    width = max(map(len, lines)) + 2
    print(" " * width + "".join(f"{name:>22}" for name in columns))
    for line in lines:
        mine = float(columns[Ours.name].get(line, "nan"))
        cells = []
        for figures in columns.values():
            missing = "not installed" if "" in figures else "-"
            figure = figures.get(line, missing)
            has_ratio = figures is not columns[Ours.name] and mine > 0 and figure[0].isdigit()
            ratio = f" ({float(figure) / mine:.1f}x)" if has_ratio else ""
            cells.append(f"{figure + ratio:>22}")
        print(f"{line:<{width}}" + "".join(cells))


if __name__ == "__main__":
    main()
