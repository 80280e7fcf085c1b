"""What a process can do with a session that another one holds: wait for its release, or follow its events."""

import asyncio
from collections.abc import AsyncIterator

from holdfast.core import SessionId
from holdfast.core.errors import SessionHeld
from holdfast.core.events import RecordedEvent
from holdfast.store.contract import Journal, Store

POLL_SECONDS = 0.05


async def wait_until_released(store: Store, session: SessionId, *, timeout_seconds: float) -> bool:
    """Wait until no process holds a session; False if the time runs out."""
    deadline = asyncio.get_running_loop().time() + timeout_seconds
    while await store.holder(session) is not None:
        if asyncio.get_running_loop().time() >= deadline:
            return False
        await asyncio.sleep(POLL_SECONDS)
    return True


async def open_when_released(store: Store, session: SessionId, *, timeout_seconds: float) -> Journal:
    """Take the lease as soon as its holder releases it or ends. Raises SessionHeld if the time runs out."""
    deadline = asyncio.get_running_loop().time() + timeout_seconds
    while True:
        try:
            return await store.open(session)
        except SessionHeld:
            if asyncio.get_running_loop().time() >= deadline:
                raise
            await asyncio.sleep(POLL_SECONDS)


async def tail(store: Store, session: SessionId, *, after: int = 0) -> AsyncIterator[RecordedEvent]:
    """Yield every event after `after`, including future ones, once they are durable. Runs until the caller stops."""
    with store.watch() as watch:
        while True:
            for recorded in await store.read(session, after=after):
                yield recorded
                after = recorded.seq
            await watch.changed()
