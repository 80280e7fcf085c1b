"""The worker processes of an engine: started when first needed, bounded in number, kept warm for a while.

A guest at rest may keep its worker so that its next run starts at once. The least recently used gives it up when another
guest needs one, when too many rest, and when it has rested for long; its variables are then a few kilobytes.
"""

import asyncio
import atexit
import functools
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Protocol

from holdfast.core.errors import EngineMissing, GuestError
from holdfast.guests.contract import GuestLimits

if TYPE_CHECKING:
    import pydantic_monty as monty

    from holdfast.guests.python.checker import Checker
    from holdfast.guests.python.worker import Worker

_CHECKING_WORKERS = 4
_EXIT_SECONDS = 0.05
_WAIT_SECONDS = 300.0


class Resting(Protocol):
    """A guest that keeps a warm worker."""

    async def cool(self) -> None:
        """Give the worker back and keep the variables."""
        ...


class WorkerPool:
    """Hands out workers, one a running or resting guest, and at most `max_workers`."""

    def __init__(self, *, max_workers: int, max_resting: int = 16, rest_seconds: float = 30.0) -> None:
        self._slots = asyncio.Semaphore(max_workers)
        self._max_workers = max_workers
        self._max_resting = max_resting
        self._rest_seconds = rest_seconds
        self._resting: OrderedDict[Resting, float] = OrderedDict()
        self._starting = asyncio.Lock()
        self._pool: monty.AsyncMonty | None = None
        self._checker: Checker | None = None
        self._cooling: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._waiting = 0
        self._is_closed = False

    async def open(self, limits: GuestLimits) -> "Worker":
        """A worker for code with these limits. Waits where all are busy."""
        from holdfast.guests.python.worker import Worker

        pool = await self._started()
        self._waiting += 1
        try:
            if self._slots.locked():
                self._cool_oldest()
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._slots.acquire()
        except TimeoutError:
            raise GuestError(
                f"all {self._max_workers} Python workers have been busy for {_WAIT_SECONDS:g} s",
                hint="Try again later, or allow more workers.",
            ) from None
        finally:
            self._waiting -= 1
        try:
            return await Worker.open(pool, limits, release=self._slots.release)
        except BaseException:
            self._slots.release()
            raise

    def checker(self) -> "Checker":
        """The one that looks at code before it runs."""
        from holdfast.guests.python.checker import Checker

        if self._checker is None:
            self._checker = Checker(self._open_checking)
        return self._checker

    def rest(self, guest: Resting) -> None:
        """A guest keeps its worker without running anything."""
        loop = asyncio.get_running_loop()
        self._resting[guest] = loop.time()
        self._resting.move_to_end(guest)
        if self._waiting or len(self._resting) > self._max_resting:
            self._cool_oldest()
        elif self._timer is None:
            self._timer = loop.call_later(self._rest_seconds, self._sweep)

    def wake(self, guest: Resting) -> None:
        """A guest runs again, or has given its worker back."""
        self._resting.pop(guest, None)

    async def close(self) -> None:
        """Stop every process. Idempotent."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        while self._resting:
            self._cool_oldest()
        if self._cooling:
            await asyncio.wait(self._cooling)
        if self._checker is not None:
            await self._checker.close()
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.__aexit__(None, None, None)

    async def _started(self) -> "monty.AsyncMonty":
        if self._is_closed:
            raise GuestError("this engine is closed", hint="Make a new engine.")
        async with self._starting:
            if self._pool is None:
                self._pool = await _start(self._max_workers + _CHECKING_WORKERS)
            return self._pool

    async def _open_checking(self, limits: GuestLimits, stubs: str) -> "Worker":
        from holdfast.guests.python.worker import Worker

        return await Worker.open(await self._started(), limits, stubs=stubs)

    def _cool_oldest(self) -> None:
        if self._resting:
            guest, _ = self._resting.popitem(last=False)
            task = asyncio.get_running_loop().create_task(guest.cool())
            self._cooling.add(task)
            task.add_done_callback(self._cooling.discard)

    def _sweep(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        while self._resting and next(iter(self._resting.values())) <= loop.time() - self._rest_seconds:
            self._cool_oldest()
        if self._resting:
            oldest = next(iter(self._resting.values()))
            self._timer = loop.call_at(oldest + self._rest_seconds, self._sweep)


async def _start(processes: int) -> "monty.AsyncMonty":
    try:
        import pydantic_monty as monty
        from pydantic_monty._binary import find_monty_binary

        from holdfast.guests.python.launcher import launcher

        program = launcher(find_monty_binary())
    except (ImportError, OSError) as error:
        raise EngineMissing(
            f"the Python sandbox cannot be loaded: {error}",
            hint="Reinstall holdfast; it brings pydantic-monty.",
        ) from error
    _let_threads_end_before_exit()
    pool = monty.AsyncMonty(binary_path=program, min_processes=1, max_processes=processes)
    await pool.__aenter__()
    return pool


@functools.cache
def _let_threads_end_before_exit() -> None:
    """Give the engine's own threads a moment without the interpreter lock before Python shuts down.

    They still hold references after the last answer has arrived; one that asks for the lock while Python is finalizing
    takes the whole process down (SIGABRT, one exit in four).
    """
    atexit.register(time.sleep, _EXIT_SECONDS)
