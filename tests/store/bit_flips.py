"""Bit flips at rest: a home that uses every feature of the store, and what must be visible after the damage."""

import random
import shutil
from pathlib import Path

from tests.store.sample_events import opened, turn

from holdfast.core import FakeClock, SessionId
from holdfast.core.errors import HoldfastError
from holdfast.core.events import Noted
from holdfast.store import Home
from holdfast.store.sqlite.store import SqliteStore

Stored = dict[SessionId, list[bytes]]
"""The sessions and the hashes of their events."""
LONG = "long " * 1500


async def furnish(home: Home, folder: Path) -> Stored:
    """Long and short texts, a fork of a deleted session, a blob, and a session that was deleted and imported again.

    What a process that is killed now would leave is in `folder / "killed"`.
    """
    store = await SqliteStore.start(home, clock=FakeClock())
    journals = [await store.create(opened(name=f"name-{n}")) for n in range(5)]
    for journal in journals:
        for number in (1, 2, 3):
            await journal.append(*turn(number, LONG if number == 2 else f"{number}"))
    await journals[1].append(Noted(code="n", text="n"), blobs=[b"content" * 100])
    journals.append(await store.fork(journals[0].session, at=5, opened=opened(name="fork")))
    for journal in (journals[0], journals[2]):
        await journal.release()
    file = folder / "travelling.zip"
    await store.export_session(journals[2].session, file, now_ms=0)
    for journal in (journals[0], journals[2]):
        await store.delete(journal.session)
    await store.import_session(file, now_ms=0)
    for number in range(3):  # a damaged last commit looks like one that was never acknowledged
        await store.put_blob(b"%d" % number)
    stored = {one.id: [record.hash for record in await store.read(one.id)] for one in await store.sessions()}
    shutil.copytree(home.root, folder / "killed", ignore=shutil.ignore_patterns("holders"))
    await store.close()
    return stored


def flip(path: Path, dice: random.Random) -> None:
    """Flip one or more bits in the used part of the file."""
    content = bytearray(path.read_bytes())
    end = len(bytes(content).rstrip(b"\0"))
    for _ in range(dice.choice((1, 1, 1, 5, 50))):
        content[dice.randrange(end)] ^= 1 << dice.randrange(8)
    path.write_bytes(content)


async def look(home: Home, stored: Stored) -> list[str]:
    """Start twice, use the store, and return what was hidden or raised an error other than ours."""
    hidden: list[str] = []
    is_reported = False
    for start in ("first", "second"):
        try:
            store = await SqliteStore.start(home, clock=FakeClock())
        except HoldfastError:
            is_reported = True
            continue
        for session, hashes in stored.items():
            hidden += [f"{start}: {what}" for what in await _compare(store, session, hashes)]
        try:
            found = {one.session for one in await store.verify_all()}
            if stored.keys() - found and not (is_reported or store.notices):
                hidden.append(f"{start}: a session is gone from the list")
            await store.search("long")
            await store.sweep()
        except HoldfastError:
            is_reported = True
        is_reported = is_reported or bool(store.notices)
        await store.close()
    return hidden


async def _compare(store: SqliteStore, session: SessionId, hashes: list[bytes]) -> list[str]:
    hidden: list[str] = []
    try:
        if [record.hash for record in await store.read(session)] != hashes:
            hidden.append("another history is read without a word")
    except HoldfastError:
        pass  # the damage was reported
    try:
        found = await store.verify(session)
        if found.is_intact and found.last_hash != hashes[-1].hex():
            hidden.append("a different history counts as intact")
        await store.export_session(session, store.home.root / "out.zip", now_ms=0)
    except HoldfastError:
        pass
    (store.home.root / "out.zip").unlink(missing_ok=True)
    return hidden
