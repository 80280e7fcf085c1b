"""One worker process with one interpreter session in it: entered, driven turn by turn, killed when it must be.

A watch over many short waits in a row: one timer for all of them, moved only when it is reached.

Code may make ten thousand calls in a run, and each is a turn with a limit; a timer for each would cost a tenth of the time.
"""

import asyncio
import contextlib
import math
import os
import resource
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pydantic_monty as monty

from holdfast.core.errors import GuestError
from holdfast.guests.contract import GuestLimits
from holdfast.guests.python.worker_errors import WorkerLost, WorkerTimeout


class Watchdog:
    """Bites once where a wait outlives its limit."""

    def __init__(self, bite: Callable[[], None]) -> None:
        self._bite = bite
        self._ends: float | None = None
        """When the present wait has to be over; None between waits."""
        self._timer: asyncio.TimerHandle | None = None
        self.has_bitten = False

    def start(self, seconds: float) -> None:
        """A wait begins."""
        loop = asyncio.get_running_loop()
        self._ends = loop.time() + seconds
        if self._timer is not None and self._timer.when() > self._ends:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = loop.call_at(self._ends, self._look)

    def stop(self) -> None:
        """The wait is over."""
        self._ends = None

    def close(self) -> None:
        """There are no more waits."""
        self._ends = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        self._timer = None
        if self._ends is None:
            return
        loop = asyncio.get_running_loop()
        if loop.time() < self._ends:
            self._timer = loop.call_at(self._ends, self._look)
            return
        self.has_bitten = True
        self._bite()


T = TypeVar("T")
_GRACE_SECONDS = 1.0
_STATE_SECONDS = 60.0
# Calls and sleeps are counted and bounded by the run itself; the engine's own counters only must not come first.
_UNBOUNDED = 1_000_000_000


class Worker:
    """Owns a session of the pool. After `kill` or `close` it is of no more use."""

    def __init__(
        self, session: monty.AsyncMontySession, *, release: Callable[[], None] | None = None
    ) -> None:
        self.session = session
        self._release = release
        self._pid = session.worker_pid
        self._is_open = True
        self._watchdog = Watchdog(self._signal)

    @classmethod
    async def open(
        cls,
        pool: monty.AsyncMonty,
        limits: GuestLimits,
        *,
        stubs: str | None = None,
        release: Callable[[], None] | None = None,
    ) -> "Worker":
        """Take a worker out of the pool for code with these limits; with stubs, one that checks types."""
        session = pool.checkout(
            limits={
                "max_feed_duration_secs": limits.seconds,
                "max_memory": limits.memory_bytes,
                "max_suspensions": _UNBOUNDED,
            },
            type_check=stubs is not None,
            type_check_stubs=stubs,
            type_check_format="json",
            os_policy={"datetime": "call_host", "sleep": "call_host", "random_start": "call_host"},
        )
        try:
            await session.__aenter__()
        except (monty.MontyError, RuntimeError) as error:
            raise GuestError(
                f"a process of the Python sandbox does not start: {error}",
                hint="Run `holdfast doctor` to see why.",
            ) from error
        return cls(session, release=release)

    def allow_computing(self, seconds: int) -> None:
        """Bound what the process computes from here on, where the kernel can. For good: such a worker is killed in the
        end, never given back.
        """
        if self._pid is None or sys.platform != "linux":
            return
        with contextlib.suppress(ProcessLookupError):  # dead already, as the next turn will tell
            spent = time.clock_gettime(_processor_clock(self._pid))
            _, most = resource.prlimit(self._pid, resource.RLIMIT_CPU)
            wanted = math.ceil(spent) + seconds
            soft = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
            resource.prlimit(self._pid, resource.RLIMIT_CPU, (soft, most))

    async def turn(self, step: Awaitable[T], *, seconds: float) -> T:
        """Await one turn of the interpreter. Raises WorkerLost; a worker that takes too long is killed, also when
        the caller is cancelled.
        """
        self._watchdog.start(seconds)
        try:
            return await step
        except asyncio.CancelledError:
            await asyncio.shield(self.kill())
            raise
        except monty.MontyCrashedError as error:
            if signal.SIGXCPU.name in str(error):
                raise WorkerTimeout("the sandbox process has computed for as long as it may") from None
            if not self._watchdog.has_bitten:
                raise
            await self.close()
            raise WorkerTimeout(f"the sandbox process did not answer within {seconds:g} s") from None
        except RuntimeError as error:
            raise WorkerLost(str(error)) from error
        finally:
            self._watchdog.stop()

    async def dump(self) -> bytes:
        """The variables between runs. Raises WorkerLost; the worker is of no more use then."""
        return await self._keeping(self.session.dump())

    async def load(self, dump: bytes) -> None:
        """Take up variables. Raises WorkerLost; the worker is of no more use then."""
        await self._keeping(self.session.load_session(dump))

    async def close(self) -> None:
        """Give the worker back to the pool, which clears it. Idempotent."""
        if not self._is_open:
            return
        self._is_open = False
        self._watchdog.close()
        try:
            with contextlib.suppress(monty.MontyError, RuntimeError):
                await self.session.__aexit__(None, None, None)
        finally:
            if self._release is not None:
                self._release()

    async def kill(self) -> None:
        """End the process, whatever it does. Idempotent."""
        if self._is_open:
            self._signal()
            await self.close()

    async def _keeping(self, step: Awaitable[T]) -> T:
        try:
            return await self.turn(step, seconds=_STATE_SECONDS)
        except monty.MontyError as error:
            raise WorkerLost(str(error)) from error

    def _signal(self) -> None:
        # Once only: after its death the number may belong to another process.
        pid, self._pid = self._pid, None
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _processor_clock(pid: int) -> int:
    """The number under which Linux knows the time that a process has computed."""
    return (~pid << 3) | 2


def grace_seconds(carried: GuestLimits, wanted: GuestLimits) -> float:
    """How much longer to wait than wanted, because the interpreter stops by itself and then says where it was."""
    return _GRACE_SECONDS if carried.seconds <= wanted.seconds else 0.0
