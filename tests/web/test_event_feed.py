"""The stream of all events: where a browser continues."""

import asyncio

from tests.store.sample_events import opened, said

from holdfast.core import SystemClock
from holdfast.store import MemoryStore
from holdfast.web.event_feed import RESET, EventFeed


async def test_a_browser_that_returns_before_the_server_has_read_its_store_misses_nothing() -> None:
    store = MemoryStore(clock=SystemClock())
    journal = await store.create(opened())
    await journal.append(said(1, "before the restart"))
    seen = await store.last_row()
    feed = EventFeed(store)
    frames = feed.frames(after=seen)
    assert (await anext(frames)).startswith(b"retry:")
    following = asyncio.ensure_future(anext(frames))
    await asyncio.sleep(0)
    reading = asyncio.ensure_future(feed.run())
    await journal.append(said(2, "after the restart"))
    frame = await following
    assert frame != RESET
    assert b"after the restart" in frame
    reading.cancel()
    await asyncio.wait([reading])
    await frames.aclose()  # type: ignore[attr-defined]
