"""News: processes tell each other that they recorded something, after the commit and a few times a second at most.

Never within the append's transaction: PostgreSQL takes a lock over the whole server for a commit with a notification,
which undoes the gain of committing in groups.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import asyncpg

from holdfast.core import SessionId
from holdfast.core.errors import StoreUnavailable
from holdfast.store.postgres.database import LOST, SQL, Database, close_quickly, connect

CHANNEL = "holdfast"
DELAY_SECONDS = 0.01
POLL_SECONDS = 1.0
"""A watcher looks this often without news, because a notification is lost if the connection is."""
_MAX_PAYLOAD_BYTES = 7000


class NewsWatch:
    """Wakes its owner after news."""

    def __init__(self) -> None:
        self.is_changed = asyncio.Event()
        self.is_changed.set()  # what was recorded before the first look counts

    async def changed(self) -> None:
        """Return when there may be new events since the last call."""
        with suppress(TimeoutError):
            async with asyncio.timeout(POLL_SECONDS):
                await self.is_changed.wait()
        self.is_changed.clear()


class News:
    """Sends and receives the news of one store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._watches: list[NewsWatch] = []
        self._unsent: set[SessionId] = set()
        self._sender: asyncio.Task[None] | None = None
        self._listener: asyncio.Task[None] | None = None

    def recorded(self, sessions: Sequence[SessionId]) -> None:
        """Tell the watchers of this process now, and other processes in a moment."""
        self._wake()
        self._unsent.update(sessions)
        if self._sender is None:
            self._sender = asyncio.create_task(self._send(), name="holdfast-news")

    @contextmanager
    def watch(self) -> Iterator[NewsWatch]:
        """NewsWatch for news for the duration of the block."""
        watch = NewsWatch()
        self._watches.append(watch)
        if self._listener is None:
            self._listener = asyncio.create_task(self._listen(), name="holdfast-listener")
        try:
            yield watch
        finally:
            self._watches.remove(watch)

    async def close(self) -> None:
        """Stop listening; news that was not sent yet is sent."""
        if self._listener is not None:
            self._listener.cancel()
            with suppress(asyncio.CancelledError):
                await self._listener
        if self._sender is not None:
            await self._sender

    def _wake(self) -> None:
        for watch in self._watches:
            watch.is_changed.set()

    async def _send(self) -> None:
        await asyncio.sleep(DELAY_SECONDS)
        self._sender = None
        text, self._unsent = " ".join(self._unsent), set()
        payload = text if len(text) < _MAX_PAYLOAD_BYTES else ""
        with suppress(StoreUnavailable):  # watchers look by themselves
            await self._database.read(lambda connection: connection.execute(SQL["notify"], payload))

    async def _listen(self) -> None:
        while True:
            connection: asyncpg.Connection | None = None
            gone = asyncio.Event()
            try:
                connection = await connect(self._database.url)
                connection.add_termination_listener(lambda _, gone=gone: gone.set())
                await connection.add_listener(CHANNEL, lambda *_: self._wake())
                self._wake()  # for what was recorded before
                await gone.wait()
            except (*LOST, asyncpg.PostgresError):
                pass
            finally:
                if connection is not None:
                    await close_quickly(connection)
            await asyncio.sleep(POLL_SECONDS)
