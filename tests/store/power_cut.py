"""Simulate power failures: `python -m tests.store.power_cut FOLDER COUNT SEED`, with the library of `disk.c` in LD_PRELOAD.

A piece of work is done once, and everything that it asked of the disk is written down. Then, for moments in it, a home is
made as a disk could hold it after the power went: what was synced is there, and of everything else any part may be, in
pieces of a sector, in any order. Names change in their order, as every journaling file system keeps it, up to any point
after the last sync. Prints one JSON line for each: what was acknowledged by then, and what was found wrong.
"""

import asyncio
import ctypes
import json
import os
import random
import sqlite3
import sys
from dataclasses import dataclass, field
from pathlib import Path

import tests.store.crash_runs as crash_runs

import holdfast.store.sqlite.database as database
import holdfast.store.sqlite.transaction as transaction
import holdfast.store.sqlite.wal_prealloc as wal_prealloc
from holdfast.store import Home

SECTOR = 512


@dataclass(frozen=True, slots=True)
class Step:
    """One disk operation, or an acknowledgement."""

    kind: str
    place: int
    path: str
    content: bytes


@dataclass(slots=True)
class File:
    """The durable content of a file and the operations since, in order: bytes at an offset, or None for a truncation."""

    safe: bytearray = field(default_factory=bytearray)
    pending: list[tuple[int, bytes | None]] = field(default_factory=list)

    def sync(self) -> None:
        for place, content in self.pending:
            _apply(self.safe, place, content)
        self.pending.clear()

    def after_the_cut(self, dice: random.Random) -> bytes:
        content = bytearray(self.safe)
        survives = dice.choice((0.0, 0.5, 0.9, 1.0))
        for place, written in self.pending:
            if written is None:
                if dice.random() < survives:
                    _apply(content, place, None)
                continue
            for start in range(place - place % SECTOR, place + len(written), SECTOR):
                if dice.random() < survives:
                    begin, end = max(start, place), min(start + SECTOR, place + len(written))
                    _apply(content, begin, written[begin - place : end - place])
        return bytes(content)


def _apply(content: bytearray, place: int, written: bytes | None) -> None:
    if written is None:
        del content[place:]
        return
    content.extend(bytes(max(place + len(written) - len(content), 0)))
    content[place : place + len(written)] = written


def record(home: Home, trace: Path) -> list[Step]:
    """Run the work once in a child process, and read its recorded disk operations."""
    child = os.fork()
    if child == 0:
        disk = ctypes.CDLL(None)
        disk.disk_record(str(home.root).encode(), str(trace).encode())
        crash_runs.NOTE = lambda _, text: disk.disk_note(bytes(text).strip()) or 0
        asyncio.run(crash_runs.work(home, 0))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    steps: list[Step] = []
    content = trace.read_bytes()
    place = 0
    while place < len(content):
        end = content.index(b"\n", place)
        kind, where, size, path = content[place:end].decode().split(" ", 3)
        place = end + 1 + int(size)
        steps.append(Step(kind, int(where), path, content[end + 1 : place]))
    return steps


def cut(steps: list[Step], home: Home, target: Home, dice: random.Random) -> None:
    """Build a home as it could be after a power failure at this step."""
    files: dict[str, File] = {}
    safe: dict[str, File] = {}
    unsafe: list[Step] = []
    for step in steps:
        match step.kind:
            case "W" | "T":
                file = files.setdefault(step.path, File())
                safe.setdefault(step.path, file)
                file.pending.append((step.place, step.content if step.kind == "W" else None))
            case "S" if step.path in files:
                files[step.path].sync()
            case "S":  # a folder: all renames so far are durable
                safe, unsafe = dict(files), []
            case "R" | "L" | "U" if step.path in files:
                _rename(files, step)
                unsafe.append(step)
            case _:
                continue
    for step in unsafe[: dice.randint(0, len(unsafe))]:
        if step.path in safe:
            _rename(safe, step)
    for path, file in safe.items():
        place = target.root / Path(path).relative_to(home.root)
        place.parent.mkdir(parents=True, exist_ok=True)
        if not path.endswith("-shm"):  # shared memory
            place.write_bytes(file.after_the_cut(dice))


def _rename(files: dict[str, File], step: Step) -> None:
    file = files[step.path]
    if step.kind != "L":
        del files[step.path]
    if step.kind != "U":
        files[step.content.decode()] = file


def be_careless() -> None:
    """Make SQLite sync too little, which the simulation must detect."""
    connect = database.connect

    def careless(path: Path, *, timeout_seconds: float = 10.0) -> sqlite3.Connection:
        connection = connect(path, timeout_seconds=timeout_seconds)
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    database.connect = careless


if __name__ == "__main__":
    if sys.argv[4:] == ["careless"]:
        be_careless()
    # So that the log is checkpointed and preallocated again and again.
    database.CHECKPOINT_PAGES = 12
    wal_prealloc.CHECK_INTERVAL_JOBS, wal_prealloc.STEP_BYTES = 2, 64 * 1024
    transaction.FAST_COMMIT_SECONDS = 60  # a busy machine must not change which thread commits
    folder, count, seed = Path(sys.argv[1]), *map(int, sys.argv[2:4])
    dice = random.Random(seed)
    worked = Home(folder / "worked")
    steps = record(worked, folder / "trace")
    for number in range(count):
        moment = dice.randint(0, len(steps))
        acknowledged = [step.path for step in steps[:moment] if step.kind == "N"]
        target = Home(folder / f"cut-{number}")
        cut(steps[:moment], worked, target, dice)
        wrong = asyncio.run(crash_runs.look(target, acknowledged))
        report = {"moment": moment, "of": len(steps), "acknowledged": acknowledged, "wrong": wrong}
        print(json.dumps(report), flush=True)
