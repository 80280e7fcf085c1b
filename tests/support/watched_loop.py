"""A fixture for tests of the event loop: no callback may use more CPU time than a loop that sessions share can spare."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest

from holdfast.cli.doctor.loop_watchdog import LIMIT_SECONDS, LoopWatchdog

_REFERENCE_SECONDS = 0.012
"""CPU time of `_calibrate` on the machine for which the limit was chosen. A slower or busier one gets more time."""

_ALLOWANCE = 2
"""Other processes on the same core take cache and with it CPU time. What the tests are about takes several times the limit."""


@pytest.fixture
def watch_loop() -> Callable[[], AbstractContextManager[LoopWatchdog]]:
    """Watches the loop inside a `with` block and fails on work that takes too long."""

    @contextmanager
    def watch() -> Iterator[LoopWatchdog]:
        limit = _ALLOWANCE * LIMIT_SECONDS * max(1.0, _calibrate() / _REFERENCE_SECONDS)
        gc.collect()
        gc.disable()  # a collection of all objects is not the work of the callback that it interrupts
        try:
            with LoopWatchdog(limit) as watchdog:
                yield watchdog
        finally:
            gc.enable()
        assert watchdog.blocked == []

    return watch


def _calibrate() -> float:
    before = time.thread_time()
    sum(number * number for number in range(200_000))
    return time.thread_time() - before
