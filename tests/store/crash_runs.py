"""Run a piece of work in a child, kill it at its n-th step towards the disk, for every n: `python -m tests.store.crash_runs`.

Takes a folder and the range of steps; prints one JSON line for each crash: what was acknowledged, and what was found.
Children are forked from this small process, which has no threads then, so that hundreds of crashes take seconds.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from tests.store.faults import Steps, faulty, killed
from tests.store.sample_events import opened, said

import holdfast.store.sqlite.transaction as transaction
from holdfast.core import SessionId, SystemClock
from holdfast.core.errors import JournalDamaged
from holdfast.core.events import MessagePosted, SessionRenamed
from holdfast.store import Home
from holdfast.store.sqlite.store import SqliteStore

LARGE = b"large" * 300_000


async def work(home: Home, note: int) -> None:
    """Create, append, name, fork, store blobs, delete; report every acknowledgement at once."""

    def acknowledged(what: str) -> None:
        NOTE(note, f"{what}\n".encode())

    store = await SqliteStore.start(home, clock=SystemClock())
    first = await store.create(opened(), session=SessionId("first"))
    acknowledged("first:0")
    for number in range(1, 4):
        await first.append(said(number, str(number)), blobs=[b"%d" % number])
        acknowledged(f"first:{number}")
    await first.append(SessionRenamed(name="named"))
    for number in range(4, 9):
        await first.append(said(number, str(number)))
        acknowledged(f"first:{number}")
    fork = await store.fork(first.session, at=3, opened=opened())
    await asyncio.gather(*(fork.append(said(n, str(n))) for n in (3, 4)))
    acknowledged("fork:4")
    digest = await store.put_blob(LARGE)
    acknowledged(f"blob:{digest}")
    gone = await store.create(opened(), session=SessionId("gone"))
    await gone.release()
    await store.delete(gone.session)
    acknowledged("gone")
    await store.close()
    acknowledged("closed")


async def look(home: Home, acknowledgements: list[str]) -> list[str]:
    """Return what is wrong after the crash, if anything."""
    store = await SqliteStore.start(home, clock=SystemClock())
    try:
        return await _wrong(store, acknowledgements)
    except JournalDamaged as problem:
        return [str(problem)]
    finally:
        await store.close()


async def _wrong(store: SqliteStore, acknowledgements: list[str]) -> list[str]:
    wrong = [f"{found.session} is damaged" for found in await store.verify_all() if not found.is_intact]
    lines = {str(line.id): line for line in await store.sessions()}
    for line in lines.values():
        recorded = await store.read(line.id)
        texts = [one.event.text for one in recorded if isinstance(one.event, MessagePosted)]
        if texts != [str(n) for n in range(1, len(texts) + 1)]:
            wrong.append(f"{line.id} holds {texts}")
        journal = await store.open(line.id)
        await journal.append(said(9, "9"))
        await journal.release()
    for entry in acknowledgements:
        what, _, value = entry.partition(":")
        if what == "first" and ("first" not in lines or lines["first"].turns < int(value)):
            wrong.append(f"lost {entry}")
        if what == "fork" and not any(line.parent and line.turns == int(value) for line in lines.values()):
            wrong.append(f"lost {entry}")
        if what == "blob" and await store.blob(value) != LARGE:
            wrong.append(f"lost {entry}")
        if what == "gone" and "gone" in lines:
            wrong.append("what was deleted is back")
    return wrong


def crash(folder: Path, step: int, *, is_after: bool) -> dict[str, object]:
    home = Home(folder / f"{step}-{is_after}")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with faulty(Steps(step, killed, is_after=is_after)):
            asyncio.run(work(home, writing))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as notes:
        acknowledgements = notes.read().split()
    os.waitpid(child, 0)
    return {
        "step": step,
        "is_after": is_after,
        "acknowledged": acknowledgements,
        "wrong": asyncio.run(look(home, acknowledgements)),
    }


NOTE = os.write  # before faults are installed

if __name__ == "__main__":
    transaction.FAST_COMMIT_SECONDS = 60  # a busy machine must not change which thread commits
    folder, first, stride, limit = Path(sys.argv[1]), *map(int, sys.argv[2:5])
    for step in range(first, limit, stride):
        reports = [crash(folder, step, is_after=is_after) for is_after in (False, True)]
        for report in reports:
            print(json.dumps(report), flush=True)
        if all("closed" in str(report["acknowledged"]) for report in reports):
            break
