"""Make a restore point and die by SIGKILL at one of its durable steps. Run as a child process."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import holdfast.store.blobs.ingest as ingest
from holdfast.core import SystemClock
from holdfast.store import Home, open_store
from holdfast.world import RestorePoints


def die_at(step: int) -> None:
    """Count syncs and renames, and die before the given one."""
    left = iter(range(step, -1, -1))
    replace, sync = os.replace, ingest._sync

    def counted(work: Any, *arguments: Any) -> Any:
        if next(left, 0) == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return work(*arguments)

    ingest.os.replace = lambda *paths: counted(replace, *paths)  # type: ignore[attr-defined]
    ingest._sync = lambda *what: counted(sync, *what)


async def main(folder: Path, step: int) -> None:
    store = await open_store(Home(folder / "home"), clock=SystemClock())
    points = RestorePoints(folder / "ws", store=store)
    die_at(step)
    await points.make()
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
