"""Retries: how long to wait before the next attempt, and when to stop."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

from holdfast.core import Clock, SystemClock

Sleep = Callable[[float], Awaitable[None]]
_Result = TypeVar("_Result")

_FIRST_WAIT_SECONDS = 0.5
_MAX_WAIT_SECONDS = 30.0


class RetryPolicy:
    """One time limit over all attempts at one reply. Tests pass their own clock and sleep, and so never wait."""

    def __init__(
        self,
        timeout_seconds: float,
        max_attempts: int,
        *,
        sleep: Sleep = asyncio.sleep,
        clock: Clock | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.timeout_seconds, self.max_attempts = timeout_seconds, max_attempts
        self._sleep, self._clock, self._jitter = sleep, clock or SystemClock(), jitter

    async def run(self, work: Coroutine[object, object, _Result]) -> _Result:
        """Run the work. Raises TimeoutError at the time limit; in either case no task is left running."""
        task = asyncio.ensure_future(work)
        alarm = asyncio.ensure_future(self._sleep(self.timeout_seconds))
        try:
            done, _ = await asyncio.wait({task, alarm}, return_when=asyncio.FIRST_COMPLETED)
            if task in done:
                return task.result()
            raise TimeoutError
        finally:
            task.cancel()
            alarm.cancel()
            await asyncio.gather(task, alarm, return_exceptions=True)

    def start(self) -> float:
        """The time of the first attempt, to pass to `wait`."""
        return self._clock.monotonic()

    def delay(self, attempt: int, *, started: float, retry_after_seconds: float | None) -> float | None:
        """The seconds to wait after a failed attempt, counted from 1; None if there must not be another."""
        if attempt >= self.max_attempts:
            return None
        backoff = min(_FIRST_WAIT_SECONDS * 2 ** (attempt - 1), _MAX_WAIT_SECONDS)
        # Half of the wait is random, so that many sessions do not retry at the same moment.
        seconds = backoff * (0.5 + self._jitter() / 2)
        if retry_after_seconds is not None:
            seconds = max(seconds, retry_after_seconds)
        seconds_left = self.timeout_seconds - (self._clock.monotonic() - started)
        return seconds if seconds < seconds_left else None

    async def sleep(self, seconds: float) -> None:
        """Wait before the next attempt."""
        await self._sleep(seconds)
