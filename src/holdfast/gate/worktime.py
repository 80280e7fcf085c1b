"""The time of a turn: taken from the budget part by part while it is worked on, and stopped when there is no more.

Turns of one tree work at the same time. Each holds only what it is about to use, so that together they never pass a limit
that each alone would keep, and none takes all of it from the others.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from holdfast.core.errors import HoldfastError
from holdfast.gate.budget import Budget


@asynccontextmanager
async def within_time(budget: Budget) -> AsyncIterator[None]:
    """Work for as long as the budget has time. Raises BudgetExceeded in the middle of it when the time is up.

    What was held is given back by the event that says how long the turn took.
    """
    loop = asyncio.get_running_loop()
    limit = asyncio.timeout(None)
    until = loop.time()
    timer: asyncio.TimerHandle | None = None
    problem: HoldfastError | OSError | None = None

    def take_more() -> None:
        nonlocal until, timer, problem
        try:
            part = budget.hold_time()
        except (HoldfastError, OSError) as error:  # a purse that cannot be read gives no time either
            problem = error
            limit.reschedule(until)
            return
        if part is not None:
            until += part
            timer = loop.call_at(until, take_more)

    try:
        async with limit:
            take_more()
            yield
    except TimeoutError:
        if problem is None:
            raise
        raise problem from None
    finally:
        if timer is not None:
            timer.cancel()
