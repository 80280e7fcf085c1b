"""The news of a session: every event as it becomes durable, to whoever follows."""

import asyncio
from collections.abc import AsyncIterator

from holdfast.core.events import RecordedEvent
from holdfast.store import Journal


class EventStream:
    """Lets any number of readers go through the journal and wait at its end; who stops reading leaves nothing behind."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._appended: asyncio.Event | None = None
        self._is_ended = False

    async def events(self, after: int) -> AsyncIterator[RecordedEvent]:
        """Every event above a number, then each new one, until the feed is ended."""
        appended = self._subscribe()
        position = 0
        while True:
            while position < len(self._journal.recorded):
                entry = self._journal.recorded[position]
                position += 1
                if entry.seq > after:
                    yield entry
            if self._is_ended:
                return
            # Only who has seen everything clears it, and who waits already was woken when it was set.
            appended.clear()
            await appended.wait()

    def end(self) -> None:
        """Let everybody who waits go."""
        self._is_ended = True
        if self._appended is not None:
            self._appended.set()

    def _subscribe(self) -> asyncio.Event:
        """What is set by every event; nobody is told of any before somebody reads."""
        if self._appended is None:
            appended = self._appended = asyncio.Event()
            self._journal.follow(lambda _: appended.set())
        return self._appended
