"""Company: what a second process can do with a session that another one writes: wait for it, or read along."""

import asyncio
from collections.abc import AsyncIterator

from holdfast.core import SessionId
from holdfast.core.errors import SessionHeld
from holdfast.core.events import RecordedEvent
from holdfast.store.contract import Journal, Store

LOOK_AGAIN_SECONDS = 0.05


async def wait_until_released(store: Store, session: SessionId, *, timeout_seconds: float) -> bool:
    """Wait until nobody holds a session; False when the time is up before that."""
    deadline = asyncio.get_running_loop().time() + timeout_seconds
    while await store.holder(session) is not None:
        if asyncio.get_running_loop().time() >= deadline:
            return False
        await asyncio.sleep(LOOK_AGAIN_SECONDS)
    return True


async def open_when_released(store: Store, session: SessionId, *, timeout_seconds: float) -> Journal:
    """Take the lease as soon as its holder gives it back or is gone. Raises SessionHeld when the time is up."""
    deadline = asyncio.get_running_loop().time() + timeout_seconds
    while True:
        try:
            return await store.open(session)
        except SessionHeld:
            if asyncio.get_running_loop().time() >= deadline:
                raise
            await asyncio.sleep(LOOK_AGAIN_SECONDS)


async def tail(store: Store, session: SessionId, *, after: int = 0) -> AsyncIterator[RecordedEvent]:
    """Every event above `after`, those to come as well, as soon as they are durable. Ends when the caller stops."""
    while True:
        for recorded in await store.read(session, after=after):
            yield recorded
            after = recorded.seq
        await asyncio.sleep(LOOK_AGAIN_SECONDS)
