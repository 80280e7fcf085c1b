"""News: processes tell each other that they recorded or posted something, after the commit and a few times a second at most.

Never within the append's transaction: PostgreSQL takes a lock over the whole server for a commit with a notification,
which undoes the gain of committing in groups.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Literal

import asyncpg

from holdfast.core import SessionId, end_task
from holdfast.core.errors import StoreUnavailable
from holdfast.store.postgres.database import LOST, SQL, Database, close_quickly, connect

Channel = Literal["holdfast", "holdfast_request"]
EVENTS: Channel = "holdfast"
REQUESTS: Channel = "holdfast_request"
DELAY_SECONDS = 0.01
POLL_SECONDS = 1.0
"""A watcher looks this often without news, because a notification is lost if the connection is."""


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
        self._watches: dict[Channel, list[NewsWatch]] = {EVENTS: [], REQUESTS: []}
        self._unsent: set[Channel] = set()
        self._sender: asyncio.Task[None] | None = None
        self._listeners: list[asyncio.Task[None]] = []
        """The last one listens; each ends the one before it."""
        self._listened: set[Channel] = set()

    def recorded(self, _: Sequence[SessionId], channel: Channel = EVENTS) -> None:
        """Tell the watchers of this process now, and other processes in a moment."""
        self._wake(channel)
        self._unsent.add(channel)
        if self._sender is None:
            self._sender = asyncio.create_task(self._send(), name="holdfast-news")

    @contextmanager
    def watch(self, channel: Channel = EVENTS) -> Iterator[NewsWatch]:
        """Watch for news for the duration of the block."""
        watch = NewsWatch()
        self._watches[channel].append(watch)
        if channel not in self._listened:
            self._listened.add(channel)
            self._listen_again()
        try:
            yield watch
        finally:
            self._watches[channel].remove(watch)

    async def close(self) -> None:
        """Stop listening; news that was not sent yet is sent."""
        for listener in self._listeners:
            await end_task(listener)
        if self._sender is not None:
            await self._sender

    def _listen_again(self) -> None:
        self._listeners = [task for task in self._listeners if not task.done()]
        before = self._listeners[-1] if self._listeners else None
        self._listeners.append(asyncio.create_task(self._listen(before), name="holdfast-listener"))

    def _name(self, channel: Channel) -> str:
        """The channel of one tenant. No notification has a content: everybody who may connect could listen."""
        return f"{channel}:{self._database.tenant}"

    def _wake(self, channel: Channel) -> None:
        for watch in self._watches[channel]:
            watch.is_changed.set()

    async def _send(self) -> None:
        await asyncio.sleep(DELAY_SECONDS)
        self._sender = None
        unsent, self._unsent = self._unsent, set()
        for channel in unsent:
            with suppress(StoreUnavailable):  # watchers look by themselves
                await self._database.read(partial(_notify, channel=self._name(channel)))

    async def _listen(self, before: "asyncio.Task[None] | None") -> None:
        if before is not None:
            await end_task(before)
        while True:
            connection: asyncpg.Connection | None = None
            gone = asyncio.Event()
            try:
                connection = await connect(self._database.url)
                connection.add_termination_listener(lambda _, gone=gone: gone.set())
                for channel in self._listened:
                    wake = partial(self._wake, channel)
                    await connection.add_listener(self._name(channel), lambda *_, wake=wake: wake())
                    self._wake(channel)  # for what was recorded before
                await gone.wait()
            except (*LOST, asyncpg.PostgresError):
                pass
            finally:
                if connection is not None:
                    await close_quickly(connection)
            await asyncio.sleep(POLL_SECONDS)


async def _notify(connection: asyncpg.Connection, channel: str) -> None:
    await connection.execute(SQL["notify"], channel)
