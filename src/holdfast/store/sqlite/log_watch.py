"""A watch on the write-ahead log of the database: notices what any process commits, within milliseconds and without polling.

SQLite writes the log first and then its index, by memory mapping, of which inotify reports nothing. A look right after the
notification can therefore come too early and see nothing, and the event would show only with the next write. So each
notification is followed by several more looks.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from holdfast.store.files.file_watch import MODIFIED, FileWatch

LOOKS_SECONDS = (0.001, 0.003, 0.010, 0.030, 0.1, 0.3)
"""When to look again after a notification."""
FALLBACK_SECONDS = 1.0
"""How often to look without a notification: a network file system may give none."""


class LogWatch:
    """Wakes its owner after every commit of any process."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()
        self._looks: list[asyncio.TimerHandle] = []

    async def changed(self) -> None:
        with suppress(TimeoutError):
            # Not `wait_for`, which loses a cancellation that comes at the same moment as the event.
            async with asyncio.timeout(FALLBACK_SECONDS):
                await self._changed.wait()
        self._changed.clear()

    def notify(self) -> None:
        """The log was written."""
        self.cancel()
        self._changed.set()
        loop = asyncio.get_running_loop()
        self._looks = [loop.call_later(seconds, self._changed.set) for seconds in LOOKS_SECONDS]

    def cancel(self) -> None:
        """Drop the looks that are due."""
        for look in self._looks:
            look.cancel()


@contextmanager
def watch_log(database: Path) -> Iterator[LogWatch]:
    """Watch the log of a database. The folder is watched, because SQLite may remove the log and create it again."""
    log = f"{database.name}-wal"
    watch = LogWatch()
    with contextlib.ExitStack() as stack:
        stack.callback(watch.cancel)
        with suppress(OSError):  # no more watches are allowed: the fallback remains
            files = FileWatch(
                database.parent,
                events=MODIFIED,
                on_name=lambda name: watch.notify() if name in (log, None) else None,
            )
            stack.callback(files.close)
        watch.notify()  # a commit that was under way when the watch began gives no notification any more
        yield watch
