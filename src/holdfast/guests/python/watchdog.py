"""A watch over many short waits in a row: one timer for all of them, moved only when it is reached.

Code may make ten thousand calls in a run, and each is a turn with a limit; a timer for each would cost a tenth of the time.
"""

import asyncio
from collections.abc import Callable


class Watchdog:
    """Bites once where a wait outlives its limit."""

    def __init__(self, bite: Callable[[], None]) -> None:
        self._bite = bite
        self._ends: float | None = None
        """When the present wait has to be over; None between waits."""
        self._timer: asyncio.TimerHandle | None = None
        self.has_bitten = False

    def start(self, seconds: float) -> None:
        """A wait begins."""
        loop = asyncio.get_running_loop()
        self._ends = loop.time() + seconds
        if self._timer is not None and self._timer.when() > self._ends:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = loop.call_at(self._ends, self._look)

    def stop(self) -> None:
        """The wait is over."""
        self._ends = None

    def close(self) -> None:
        """There are no more waits."""
        self._ends = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        if self._ends is None:
            return
        loop = asyncio.get_running_loop()
        if loop.time() < self._ends:
            self._timer = loop.call_at(self._ends, self._look)
            return
        self.has_bitten = True
        self._bite()
