"""For tests of the event loop: no callback may use more CPU time than a loop that sessions share can spare."""

import asyncio
import gc
import time
from collections.abc import Callable, Coroutine
from typing import Any

from holdfast.cli.doctor.loop_watchdog import LIMIT_SECONDS, LoopWatchdog

_REFERENCE_SECONDS = 0.012
"""CPU time of `_calibrate` on the machine for which the limit was chosen. A slower or busier one gets more time."""

_ALLOWANCE = 2
"""Other processes on the same core take cache and with it CPU time. What the tests are about takes several times the limit."""


_ATTEMPTS = 3
"""The kernel's own work for a large value, such as finding pages, is sometimes slow. Work of ours is slow every time."""


async def assert_loop_is_free(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Fail if some callback of the loop takes too long each time that the work is done."""
    for _ in range(_ATTEMPTS):
        limit = _ALLOWANCE * LIMIT_SECONDS * max(1.0, _calibrate() / _REFERENCE_SECONDS)
        gc.collect()
        gc.disable()  # a collection of all objects is not the work of the callback that it interrupts
        try:
            with LoopWatchdog(limit) as watchdog:
                await asyncio.create_task(work())  # this task has been running for longer than the watchdog
        finally:
            gc.enable()
        if not watchdog.blocked:
            return
    raise AssertionError(f"over {limit * 1000:.0f} ms: {watchdog.blocked}")


def _calibrate() -> float:
    before = time.thread_time()
    sum(number * number for number in range(200_000))
    return time.thread_time() - before
