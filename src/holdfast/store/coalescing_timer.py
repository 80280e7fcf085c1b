"""A timer that many callbacks share, for events that wait a moment for the next append."""

import asyncio
from collections.abc import Callable

DEFERRAL_SECONDS = 0.002
"""How long a deferred event waits for another append."""


class CoalescingTimer:
    """Runs callbacks after a delay, all with one timer per event loop, because a timer costs as much as a small write."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._due: dict[asyncio.AbstractEventLoop, list[Callable[[], None]]] = {}

    def schedule(self, callback: Callable[[], None]) -> None:
        """Run a callback on this event loop within the delay."""
        loop = asyncio.get_running_loop()
        due = self._due.get(loop)
        if due is None:
            due = self._due[loop] = []
            loop.call_later(self._seconds, self._run_due, loop)
        due.append(callback)

    def _run_due(self, loop: asyncio.AbstractEventLoop) -> None:
        for callback in self._due.pop(loop):
            callback()
