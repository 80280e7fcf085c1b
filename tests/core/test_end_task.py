"""A task ends also if its first cancellation is lost."""

import asyncio

from holdfast.core import end_task


async def test_a_task_that_survives_a_cancellation_is_cancelled_again() -> None:
    lost = 0

    async def loop() -> None:
        nonlocal lost
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                if lost == 2:
                    raise
                lost += 1  # as if the connection had failed at the same moment

    task = asyncio.create_task(loop())
    await asyncio.sleep(0)
    await end_task(task)
    assert (task.done(), lost) == (True, 2)
