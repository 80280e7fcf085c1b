"""Fake time: an event loop that jumps to its next timer, so that hours pass in milliseconds."""

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any


class _Selector(selectors.DefaultSelector):
    """Waits for nothing: where nothing is ready, the time it was to wait has passed."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if not ready and timeout is None:
            raise RuntimeError("nothing is left that could happen")
        if not ready and timeout is not None:
            self.now += timeout
        return ready


class SkippingLoop(asyncio.SelectorEventLoop):
    """An event loop, and the clock of whatever runs on it."""

    def __init__(self) -> None:
        self._leaping = _Selector()
        super().__init__(self._leaping)

    def time(self) -> float:
        return self._leaping.now

    monotonic = time

    def now_ms(self) -> int:
        return round(self._leaping.now * 1000)


def run_with_fake_time(work: Coroutine[Any, Any, None]) -> None:
    """Run this on a loop whose time leaps."""
    with asyncio.Runner(loop_factory=SkippingLoop) as runner:
        runner.run(work)


def clock() -> SkippingLoop:
    """The clock of the loop at hand."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SkippingLoop)
    return loop
