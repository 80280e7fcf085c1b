"""The worker processes of an engine: started when first needed, limited in number, kept warm for a while.

An idle guest may keep its worker, so that its next run starts at once. The least recently used guest is evicted when another
guest needs a worker, when too many guests are idle, or when it has been idle for long. Its variables then take a few kilobytes.
"""

import asyncio
import atexit
import functools
import os
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Protocol

from holdfast.core.errors import EngineMissing, GuestError
from holdfast.guests.contract import GuestLimits

if TYPE_CHECKING:
    import pydantic_monty as monty

    from holdfast.guests.python.checker import Checker
    from holdfast.guests.python.worker import Worker

_CHECKER_WORKERS = 4
_EXIT_SECONDS = 0.05
_WAIT_SECONDS = 300.0
_START_DESCRIPTORS = 10
"""The files that the engine opens when it starts: without them it panics, and prints a backtrace."""


class IdleGuest(Protocol):
    """A guest that keeps a warm worker between runs."""

    async def evict(self) -> None:
        """Return the worker to the pool and keep the variables."""
        ...


class WorkerPool:
    """Hands out workers: one for each running or idle guest, and at most `max_workers`."""

    def __init__(
        self, *, max_workers: int, message_bytes: int, max_idle: int = 16, idle_seconds: float = 30.0
    ) -> None:
        self._slots = asyncio.Semaphore(max_workers)
        self._max_workers = max_workers
        self._message_bytes = message_bytes
        self._max_idle = max_idle
        self._idle_seconds = idle_seconds
        self._idle: OrderedDict[IdleGuest, float] = OrderedDict()
        self._starting = asyncio.Lock()
        self._pool: monty.AsyncMonty | None = None
        self._checker: Checker | None = None
        self._evictions: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._waiting = 0
        self._is_closed = False

    async def open(self, limits: GuestLimits) -> "Worker":
        """A worker for code with these limits. Waits while all are busy."""
        from holdfast.guests.python.worker import Worker

        pool = await self._started()
        self._waiting += 1
        try:
            if self._slots.locked():
                self._evict_oldest()
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
        """The checker of code before it runs."""
        from holdfast.guests.python.checker import Checker

        if self._checker is None:
            self._checker = Checker(self._open_checker)
        return self._checker

    def mark_idle(self, guest: IdleGuest) -> None:
        """Note that a guest keeps its worker and runs nothing."""
        loop = asyncio.get_running_loop()
        self._idle[guest] = loop.time()
        self._idle.move_to_end(guest)
        if self._waiting or len(self._idle) > self._max_idle:
            self._evict_oldest()
        elif self._timer is None:
            self._timer = loop.call_later(self._idle_seconds, self._evict_expired)

    def mark_busy(self, guest: IdleGuest) -> None:
        """Note that a guest runs again, or has returned its worker."""
        self._idle.pop(guest, None)

    async def close(self) -> None:
        """Stop every process. Idempotent."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        while self._idle:
            self._evict_oldest()
        if self._evictions:
            await asyncio.wait(self._evictions)
        if self._checker is not None:
            await self._checker.close()
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.__aexit__(None, None, None)

    async def _started(self) -> "monty.AsyncMonty":
        if self._is_closed:
            raise GuestError("this engine is closed", hint="Create a new engine.")
        async with self._starting:
            if self._pool is None:
                self._pool = await _start(self._max_workers + _CHECKER_WORKERS, self._message_bytes)
            return self._pool

    async def _open_checker(self, limits: GuestLimits, stubs: str) -> "Worker":
        from holdfast.guests.python.worker import Worker

        return await Worker.open(await self._started(), limits, stubs=stubs)

    def _evict_oldest(self) -> None:
        if self._idle:
            guest, _ = self._idle.popitem(last=False)
            task = asyncio.get_running_loop().create_task(guest.evict())
            self._evictions.add(task)
            task.add_done_callback(self._evictions.discard)

    def _evict_expired(self) -> None:
        self._timer = None
        loop = asyncio.get_running_loop()
        while self._idle and next(iter(self._idle.values())) <= loop.time() - self._idle_seconds:
            self._evict_oldest()
        if self._idle:
            oldest = next(iter(self._idle.values()))
            self._timer = loop.call_at(oldest + self._idle_seconds, self._evict_expired)


async def _start(processes: int, message_bytes: int) -> "monty.AsyncMonty":
    try:
        import pydantic_monty as monty
        from pydantic_monty._binary import find_monty_binary

        from holdfast.guests.python.launcher import launcher

        program = launcher(find_monty_binary(), message_bytes=message_bytes)
    except (ImportError, OSError) as error:
        raise EngineMissing(
            f"the Python sandbox cannot be loaded: {error}",
            hint="Reinstall holdfast; it depends on pydantic-monty.",
        ) from error
    _let_threads_end_before_exit()
    pool = monty.AsyncMonty(binary_path=program, min_processes=1, max_processes=processes)
    try:
        _check_descriptors()
        await pool.__aenter__()
    except BaseException as error:
        # The engine reports a failed start so, for example without file descriptors; or it panics, which is not an Exception.
        if not isinstance(error, RuntimeError | OSError) and type(error).__name__ != "PanicException":
            raise
        raise EngineMissing(
            f"the Python sandbox cannot be started: {error}",
            hint="If too many files are open, raise the limit and try again: ulimit -n 1024",
        ) from None
    return pool


def _check_descriptors() -> None:
    """Raise OSError if the process may not open enough files to start the engine."""
    opened: list[int] = []
    try:
        while len(opened) < _START_DESCRIPTORS:
            opened += os.pipe()
    finally:
        for each in opened:
            os.close(each)


@functools.cache
def _let_threads_end_before_exit() -> None:
    """Give the engine's threads a moment without the interpreter lock before Python shuts down.

    They still hold references after the last answer has arrived. A thread that requests the lock while Python is finalizing
    aborts the process (SIGABRT, one exit in four).
    """
    atexit.register(time.sleep, _EXIT_SECONDS)
