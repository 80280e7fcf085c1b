"""Patience: how long calls may take. One timer watches all that are under way, for one each costs as much as a quick call."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

Result = TypeVar("Result")


class OutOfPatience(Exception):
    """It took too long; a time limit of its own that it ran into is another matter."""


class Patience:
    """Waits for each call as many seconds, and no longer."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._until: dict[asyncio.Timeout, float] = {}
        """When it ends for what is under way; what began first comes first, and ends first."""
        self._watching: asyncio.AbstractEventLoop | None = None

    async def wait(self, work: Awaitable[Result]) -> Result:
        """The result. Raises OutOfPatience, with the work cancelled."""
        loop = asyncio.get_running_loop()
        limit = asyncio.timeout(None)
        try:
            async with limit:
                self._until[limit] = loop.time() + self.seconds
                if self._watching is not loop:
                    self._watch(loop)
                return await work
        except TimeoutError:
            if limit.expired():
                raise OutOfPatience from None
            raise
        finally:
            self._until.pop(limit, None)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        waiting = (until for until in self._until.values() if until > now)
        soonest = next(waiting, None)
        for limit in [limit for limit, until in self._until.items() if until <= now]:
            limit.reschedule(now)
        self._watching = loop if soonest is not None else None
        if soonest is not None:
            loop.call_at(soonest, self._watch, loop)
