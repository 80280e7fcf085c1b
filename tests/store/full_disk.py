"""Fill a small file system, free some space and continue: `python -m tests.store.full_disk FOLDER`."""

import asyncio
import sys
from pathlib import Path

from tests.store.sample_events import opened, said

from holdfast.core import SessionId, SystemClock
from holdfast.core.errors import StoreUnavailable
from holdfast.core.events import MessagePosted
from holdfast.store import Home, Journal
from holdfast.store.sqlite.store import SqliteStore

WORDS = "w" * 20_000


async def main(folder: Path) -> None:
    ballast = folder / "ballast"
    ballast.write_bytes(bytes(1024 * 1024))
    home = Home(folder / "home")
    session = SessionId("one")
    store = await SqliteStore.start(home, clock=SystemClock())
    journal = await store.create(opened(), session=session)
    written = await _until_full(journal)
    other = await SqliteStore.start(home, clock=SystemClock())
    assert len(await other.read(session)) == written + 1
    await other.close()
    ballast.unlink()
    await journal.append(said(written, f"{written}:{WORDS}"))
    await journal.append(said(written + 1, f"{written + 1}:{WORDS}"))
    await store.close()

    store = await SqliteStore.start(home, clock=SystemClock())
    assert all(found.is_intact for found in await store.verify_all())
    texts = [one.event.text for one in await store.read(session) if isinstance(one.event, MessagePosted)]
    assert [text.partition(":")[0] for text in texts] == [str(number) for number in range(written + 2)]
    await store.close()
    print("written", written)


async def _until_full(journal: Journal) -> int:
    for number in range(10_000):
        try:
            await journal.append(said(number, f"{number}:{WORDS}"))
        except StoreUnavailable as problem:
            if "full" not in str(problem):
                raise
            return number
    raise AssertionError("the disk was never full")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
