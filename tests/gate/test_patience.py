"""Whatever is under way is waited for as long as was said, whenever it began."""

import asyncio

import pytest

from holdfast.gate.deadlines import DeadlineExceeded, DeadlineWatcher


async def forever() -> None:
    await asyncio.Event().wait()


async def quick() -> str:
    return "done"


async def test_what_ends_in_time_has_its_result() -> None:
    assert await DeadlineWatcher(60).wait(quick()) == "done"


async def test_what_takes_too_long_is_ended() -> None:
    with pytest.raises(DeadlineExceeded):
        await DeadlineWatcher(0.01).wait(forever())


async def test_what_began_while_another_was_watched_is_ended_too() -> None:
    patience = DeadlineWatcher(0.01)
    first = asyncio.create_task(patience.wait(forever()))
    assert await patience.wait(quick()) == "done"
    await asyncio.sleep(0)
    second = asyncio.create_task(patience.wait(forever()))
    ended = await asyncio.gather(first, second, return_exceptions=True)
    assert [type(one) for one in ended] == [DeadlineExceeded, DeadlineExceeded]


async def test_after_a_rest_it_watches_again() -> None:
    patience = DeadlineWatcher(0.01)
    for _ in range(3):
        with pytest.raises(DeadlineExceeded):
            await patience.wait(forever())


def test_it_watches_on_whatever_event_loop_it_is_used() -> None:
    patience = DeadlineWatcher(0.01)
    asyncio.run(_quick(patience))
    with pytest.raises(DeadlineExceeded):
        asyncio.run(_forever(patience))


async def test_cancelled_from_outside_it_is_cancelled_and_not_late() -> None:
    task = asyncio.create_task(DeadlineWatcher(60).wait(forever()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_time_limit_of_its_own_is_told_as_that() -> None:
    with pytest.raises(TimeoutError, match="the line was dead"):
        await DeadlineWatcher(60).wait(dead())


async def dead() -> None:
    raise TimeoutError("the line was dead")


async def _quick(patience: DeadlineWatcher) -> None:
    await patience.wait(quick())


async def _forever(patience: DeadlineWatcher) -> None:
    await patience.wait(forever())
