"""The news of a session: every event as it becomes durable, to whoever follows."""

import asyncio
from collections.abc import AsyncIterator

from holdfast.core.events import Recorded
from holdfast.store import Journal


class Feed:
    """Hands events to those who wait for them, until it is ended."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._queues: list[asyncio.Queue[Recorded | None]] = []

    async def events(self, after: int) -> AsyncIterator[Recorded]:
        """Every event above a number, then each new one."""
        queue: asyncio.Queue[Recorded | None] = asyncio.Queue()
        self._journal.follow(queue.put_nowait)
        self._queues.append(queue)
        while (entry := await queue.get()) is not None:
            if entry.seq > after:
                yield entry

    def end(self) -> None:
        """Let everybody who waits go."""
        for queue in self._queues:
            queue.put_nowait(None)
