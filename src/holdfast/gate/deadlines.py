"""Patience: how long calls may take. One timer watches all that are under way, for one each costs as much as a quick call.

The time of a turn: taken from the budget part by part while it is worked on, and stopped when there is no more.

Turns of one tree work at the same time. Each holds only what it is about to use, so that together they never pass a limit
that each alone would keep, and none takes all of it from the others.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import TypeVar

from holdfast.core.errors import HoldfastError
from holdfast.gate.budget import Budget

Result = TypeVar("Result")


class DeadlineExceeded(Exception):
    """It took too long; a time limit of its own that it ran into is another matter."""


class DeadlineWatcher:
    """Waits for each call as many seconds, and no longer."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._deadlines: dict[asyncio.Timeout, float] = {}
        """When it ends for what is under way; what began first comes first, and ends first."""
        self._loop: asyncio.AbstractEventLoop | None = None

    async def wait(self, work: Awaitable[Result]) -> Result:
        """The result. Raises OutOfPatience, with the work cancelled."""
        loop = asyncio.get_running_loop()
        limit = asyncio.timeout(None)
        try:
            async with limit:
                self._deadlines[limit] = loop.time() + self.seconds
                if self._loop is not loop:
                    self._expire_due(loop)
                return await work
        except TimeoutError:
            if limit.expired():
                raise DeadlineExceeded from None
            raise
        finally:
            self._deadlines.pop(limit, None)

    def _expire_due(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        pending = (until for until in self._deadlines.values() if until > now)
        soonest = next(pending, None)
        for limit in [limit for limit, until in self._deadlines.items() if until <= now]:
            limit.reschedule(now)
        self._loop = loop if soonest is not None else None
        if soonest is not None:
            loop.call_at(soonest, self._expire_due, loop)


@asynccontextmanager
async def time_limit(budget: Budget) -> AsyncIterator[None]:
    """Work for as long as the budget has time. Raises BudgetExceeded in the middle of it when the time is up.

    What was held is given back by the event that says how long the turn took.
    """
    loop = asyncio.get_running_loop()
    limit = asyncio.timeout(None)
    until = loop.time()
    timer: asyncio.TimerHandle | None = None
    problem: HoldfastError | OSError | None = None

    def extend() -> None:
        nonlocal until, timer, problem
        try:
            seconds = budget.reserve_time()
        except (HoldfastError, OSError) as error:  # a purse that cannot be read gives no time either
            problem = error
            limit.reschedule(until)
            return
        if seconds is not None:
            until += seconds
            timer = loop.call_at(until, extend)

    try:
        async with limit:
            extend()
            yield
    except TimeoutError:
        if problem is None:
            raise
        raise problem from None
    finally:
        if timer is not None:
            timer.cancel()
