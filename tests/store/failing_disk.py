"""Run a piece of work on a disk that fails at its n-th system call, for every n: `python -m tests.store.failing_disk`.

Needs the library made of `disk.c` in LD_PRELOAD. Takes a folder, a fault, whether it lasts, and the range of steps; prints
one JSON line for each run: what was acknowledged, how it ended, and what was found wrong afterwards, on a sound disk.
"""

import asyncio
import ctypes
import json
import os
import sys
from pathlib import Path

import tests.store.crash_runs as crash_runs

import holdfast.store.sqlite.database as database
import holdfast.store.sqlite.transaction as transaction
import holdfast.store.sqlite.wal_prealloc as wal_prealloc
from holdfast.core.errors import StoreError
from holdfast.store import Home

FAULTS = ("none", "broken", "full", "short", "torn", "killed", "killed-after", "killed-torn")
"""In the order of `enum fault` in disk.c."""
DISK = ctypes.CDLL(None)


def run(folder: Path, step: int, fault: str, *, is_lasting: bool) -> dict[str, object]:
    home = Home(folder / f"{fault}-{step}")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        DISK.disk_arm(str(home.root).encode(), ctypes.c_long(step), FAULTS.index(fault), int(is_lasting))
        try:
            asyncio.run(crash_runs.work(home, writing))
        except StoreError as problem:
            crash_runs.NOTE(writing, f"reported:{problem.code}\n".encode())
        except BaseException as problem:
            crash_runs.NOTE(writing, f"raised:{type(problem).__name__}\n".encode())
        crash_runs.NOTE(writing, f"steps:{DISK.disk_steps()}\n".encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as notes:
        acknowledged = notes.read().split()
    os.waitpid(child, 0)
    wrong = asyncio.run(crash_runs.look(home, acknowledged))
    wrong += [note for note in acknowledged if note.startswith("raised:")]
    steps = next((note.partition(":")[2] for note in acknowledged if note.startswith("steps:")), None)
    return {"step": step, "steps": steps, "acknowledged": acknowledged, "wrong": wrong}


if __name__ == "__main__":
    # So that the log is checkpointed and preallocated again and again, not only at the end.
    database.CHECKPOINT_PAGES = 12
    wal_prealloc.CHECK_INTERVAL_JOBS, wal_prealloc.STEP_BYTES = 2, 64 * 1024
    transaction.FAST_COMMIT_SECONDS = 60  # a busy machine must not change which thread commits
    folder, fault, is_lasting = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "lasting"
    first, stride, limit = map(int, sys.argv[4:7])
    for step in range(first, limit, stride):
        report = run(folder, step, fault, is_lasting=is_lasting)
        print(json.dumps(report), flush=True)
        if report["steps"] is not None and int(str(report["steps"])) < step:
            break  # it finished before the fault
