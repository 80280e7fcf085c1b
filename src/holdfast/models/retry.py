"""Patience: how long to wait before asking again, and when to stop."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

from holdfast.core import Clock, SystemClock

Sleep = Callable[[float], Awaitable[None]]
_Result = TypeVar("_Result")

_FIRST_WAIT_SECONDS = 0.5
_LONGEST_WAIT_SECONDS = 30.0


class RetryPolicy:
    """One time limit over all attempts at one reply. Waiting and the hour are handed in, so a test needs neither."""

    def __init__(
        self,
        total_seconds: float,
        attempts: int,
        *,
        sleep: Sleep = asyncio.sleep,
        clock: Clock | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.total_seconds, self.attempts = total_seconds, attempts
        self._sleep, self._clock, self._jitter = sleep, clock or SystemClock(), jitter

    async def within(self, work: Coroutine[object, object, _Result]) -> _Result:
        """The result of the work, or TimeoutError when the time is up; either way nothing is left running."""
        task = asyncio.ensure_future(work)
        alarm = asyncio.ensure_future(self._sleep(self.total_seconds))
        try:
            done, _ = await asyncio.wait({task, alarm}, return_when=asyncio.FIRST_COMPLETED)
            if task in done:
                return task.result()
            raise TimeoutError
        finally:
            task.cancel()
            alarm.cancel()
            await asyncio.gather(task, alarm, return_exceptions=True)

    def started(self) -> float:
        """When a reply was first asked for; goes into `wait`."""
        return self._clock.monotonic()

    async def wait(self, attempt: int, *, since: float, retry_after: float | None) -> bool:
        """Wait before the attempt after this one (counted from 1). False, at once, when there is none to be made."""
        if attempt >= self.attempts:
            return False
        backoff = min(_FIRST_WAIT_SECONDS * 2 ** (attempt - 1), _LONGEST_WAIT_SECONDS)
        # Half of it by chance, so that many sessions do not come back in the same instant.
        seconds = backoff * (0.5 + self._jitter() / 2)
        if retry_after is not None:
            seconds = max(seconds, retry_after)
        left = self.total_seconds - (self._clock.monotonic() - since)
        if seconds >= left:
            return False
        await self._sleep(seconds)
        return True
