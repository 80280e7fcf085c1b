"""Deadlines of calls: each call has its own, whenever it started."""

import asyncio

import pytest

from holdfast.gate.deadlines import DeadlineExceeded, DeadlineWatcher


async def forever(watcher: DeadlineWatcher) -> None:
    async with watcher.limit():
        await asyncio.Event().wait()


async def quick(watcher: DeadlineWatcher) -> None:
    async with watcher.limit():
        await asyncio.sleep(0)


async def test_a_call_that_ends_in_time_is_not_interrupted() -> None:
    await quick(DeadlineWatcher(60))


async def test_a_call_that_takes_too_long_is_cancelled() -> None:
    with pytest.raises(DeadlineExceeded):
        await forever(DeadlineWatcher(0.01))


async def test_a_call_that_starts_while_another_is_watched_has_its_own_deadline() -> None:
    watcher = DeadlineWatcher(0.01)
    first = asyncio.create_task(forever(watcher))
    await quick(watcher)
    second = asyncio.create_task(forever(watcher))
    ended = await asyncio.gather(first, second, return_exceptions=True)
    assert [type(one) for one in ended] == [DeadlineExceeded, DeadlineExceeded]


async def test_the_watcher_starts_again_after_an_idle_period() -> None:
    watcher = DeadlineWatcher(0.01)
    for _ in range(3):
        with pytest.raises(DeadlineExceeded):
            await forever(watcher)


def test_the_watcher_works_on_another_event_loop() -> None:
    watcher = DeadlineWatcher(0.01)
    asyncio.run(quick(watcher))
    with pytest.raises(DeadlineExceeded):
        asyncio.run(forever(watcher))


async def test_a_cancellation_from_outside_is_not_a_missed_deadline() -> None:
    task = asyncio.create_task(forever(DeadlineWatcher(60)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_timeout_raised_by_the_call_itself_is_not_a_missed_deadline() -> None:
    with pytest.raises(TimeoutError, match="connection timed out"):
        async with DeadlineWatcher(60).limit():
            raise TimeoutError("connection timed out")
