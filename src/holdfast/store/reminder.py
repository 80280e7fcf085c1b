"""A reminder: whatever is to be looked at again in a moment, looked at together, for one timer costs as much as a small write."""

import asyncio
from collections.abc import Callable


class Reminder:
    """Calls back everybody who asked for it, on the event loop on which they asked."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._due: dict[asyncio.AbstractEventLoop, list[Callable[[], None]]] = {}

    def remind(self, look: Callable[[], None]) -> None:
        """Have something looked at, this many seconds from now or sooner."""
        loop = asyncio.get_running_loop()
        due = self._due.get(loop)
        if due is None:
            due = self._due[loop] = []
            loop.call_later(self._seconds, self._go, loop)
        due.append(look)

    def _go(self, loop: asyncio.AbstractEventLoop) -> None:
        for look in self._due.pop(loop):
            look()
