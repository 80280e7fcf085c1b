"""Work in threads ends with its call: by completion, by an error or by cancellation."""

import asyncio
import threading

import pytest

from holdfast.world.restore_points.save import map_in_threads

MANY = range(10_000)


async def test_every_thing_is_done_once() -> None:
    assert sorted(await map_in_threads(MANY, lambda number: number + 1)) == [(n, n + 1) for n in MANY]
    assert await map_in_threads([], lambda number: number) == []


async def test_after_an_error_all_threads_stop() -> None:
    done: list[int] = []

    def work(number: int) -> None:
        if number == 20:
            raise OSError(number)
        done.append(number)

    with pytest.raises(OSError, match="20"):
        await map_in_threads(MANY, work)
    before = len(done)
    await asyncio.sleep(0)
    assert len(done) == before < len(MANY)


async def test_a_cancellation_comes_through_only_when_nothing_works_any_more() -> None:
    has_begun, may_go_on = threading.Event(), threading.Event()
    at_work = 0

    def work(number: int) -> None:
        nonlocal at_work
        at_work += 1
        has_begun.set()
        may_go_on.wait()
        at_work -= 1

    task = asyncio.create_task(map_in_threads([1], work))
    await asyncio.to_thread(has_begun.wait)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    may_go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert at_work == 0
