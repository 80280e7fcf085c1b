"""The event stream of a session: every event, delivered once it is durable."""

import asyncio
from collections.abc import AsyncIterator

from holdfast.core.events import RecordedEvent
from holdfast.store import Journal


class EventStream:
    """Lets any number of readers follow the journal. A reader that stops leaves nothing behind."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._appended: asyncio.Event | None = None
        self._is_ended = False

    async def events(self, after: int) -> AsyncIterator[RecordedEvent]:
        """Every event after a sequence number, then each new one, until the stream ends."""
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
            # Only a reader that has seen everything clears the event; readers that already wait were woken when it was set.
            appended.clear()
            await appended.wait()

    def end(self) -> None:
        """Release every waiting reader."""
        self._is_ended = True
        if self._appended is not None:
            self._appended.set()

    def _subscribe(self) -> asyncio.Event:
        """The event that every append sets. The journal is followed only once there is a reader."""
        if self._appended is None:
            appended = self._appended = asyncio.Event()
            self._journal.follow(lambda _: appended.set())
        return self._appended
