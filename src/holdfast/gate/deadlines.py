"""Deadlines: how long a call may take, and how long a turn may work.

`DeadlineWatcher` bounds each call. One timer serves all calls in flight, because a timer per call costs as much as a quick
call. `time_limit` bounds a turn by the budget's time. It reserves that time slice by slice: turns of one tree run at the
same time, and each reserves only what it is about to use, so that together they never exceed a limit and none takes all
of it from the others.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from holdfast.core.errors import HoldfastError
from holdfast.gate.budget import Budget


class DeadlineExceeded(Exception):
    """The deadline passed. A tool that hit its own time limit raises something else."""


class DeadlineWatcher:
    """Gives every call the same number of seconds, with one timer for all of them."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._deadlines: dict[asyncio.Timeout, float] = {}
        """The deadline of each call in flight; the oldest call is first and ends first."""
        self._loop: asyncio.AbstractEventLoop | None = None

    @asynccontextmanager
    async def limit(self, own_seconds: float | None = None) -> AsyncIterator[None]:
        """Run the block until its deadline. Raises DeadlineExceeded after cancelling it.

        A call with its own limit has its own timer: the shared one relies on the order of the calls.
        """
        loop = asyncio.get_running_loop()
        limit = asyncio.timeout(own_seconds)
        try:
            async with limit:
                if own_seconds is not None:
                    yield
                    return
                self._deadlines[limit] = loop.time() + self.seconds
                if self._loop is not loop:
                    self._expire_due(loop)
                yield
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
    """Run the block for as long as the budget has time. Raises BudgetExceeded inside it when the time is up.

    The event that records the turn's duration releases what was reserved.
    """
    loop = asyncio.get_running_loop()
    limit = asyncio.timeout(None)
    until = loop.time()
    extending: asyncio.Task[None] | None = None
    problem: HoldfastError | OSError | None = None

    async def extend() -> bool:
        nonlocal until, problem
        try:
            seconds = await budget.reserve_time()
        except (HoldfastError, OSError) as error:  # a shared budget that cannot be read has no time to give
            problem = error
            limit.reschedule(until)
            return False
        until += seconds or 0.0
        return seconds is not None

    async def keep_extending() -> None:
        is_limited = True
        while is_limited:
            await asyncio.sleep(until - loop.time())
            is_limited = await extend()

    try:
        async with limit:
            if await extend():
                extending = asyncio.create_task(keep_extending())
            yield
    except TimeoutError:
        if problem is None:
            raise
        raise problem from None
    finally:
        if extending is not None:
            extending.cancel()
            await asyncio.wait([extending])
