"""The event stream: each reader gets every event once and in order, at its own pace, until the session is closed."""

import asyncio

from holdfast.core.events import Noted
from holdfast.session import Session
from holdfast.testing import memory_session


async def codes(session: Session, *, after: int = 0) -> list[str]:
    return [entry.event.code async for entry in session.events(after=after) if isinstance(entry.event, Noted)]


async def test_early_and_late_readers_get_the_same_events() -> None:
    async with memory_session() as session:
        early = asyncio.create_task(codes(session))
        await asyncio.sleep(0)
        await session.note("one", "")
        middle = asyncio.create_task(codes(session))
        await asyncio.sleep(0)
        await session.note("two", "")
        since = asyncio.create_task(codes(session, after=session.last_seq))
        await session.note("three", "")
        late = asyncio.create_task(codes(session))
        await asyncio.sleep(0)
        await session.close()
        assert await early == await middle == await late == ["one", "two", "three"]
        assert await since == ["three"]


async def test_a_reader_that_leaves_does_not_block_others() -> None:
    async with memory_session() as session:
        leaving = asyncio.create_task(codes(session))
        staying = asyncio.create_task(codes(session))
        await asyncio.sleep(0)
        leaving.cancel()
        async for _ in session.events():
            break
        await session.note("one", "")
        await session.close()
        assert await staying == ["one"]


async def test_a_closed_session_can_still_be_read() -> None:
    async with memory_session() as session:
        await session.note("one", "")
        await session.close()
        assert await codes(session) == ["one"]
