"""One worker process with one interpreter session: opened, driven one turn at a time, killed if it does not answer.

A turn runs the interpreter to its next stop and has a time limit. A run may take ten thousand turns, and a timer for each would
cost a tenth of the run's time, so a watchdog reuses one timer.
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
from holdfast.guests.python.worker_errors import MessageTooLong, WorkerLost, WorkerTimeout

T = TypeVar("T")
_GRACE_SECONDS = 1.0
_STATE_SECONDS = 60.0
_LEAST_OPEN_FILES = 66
"""A confined worker holds its program at descriptor 64."""
# The run counts and limits its calls and sleeps itself. The engine's own counter must not stop it first.
_UNBOUNDED = 1_000_000_000


class Watchdog:
    """Calls `on_timeout` once if a wait exceeds its limit. Moves its timer only when the timer fires."""

    def __init__(self, on_timeout: Callable[[], None]) -> None:
        self._on_timeout = on_timeout
        self._deadline: float | None = None
        """When the current wait must be over; None between waits."""
        self._timer: asyncio.TimerHandle | None = None
        self.has_timed_out = False

    def start(self, seconds: float) -> None:
        """Start a wait."""
        loop = asyncio.get_running_loop()
        self._deadline = loop.time() + seconds
        if self._timer is not None and self._timer.when() > self._deadline:
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = loop.call_at(self._deadline, self._check)

    def stop(self) -> None:
        """End the wait."""
        self._deadline = None

    def close(self) -> None:
        """Cancel the timer."""
        self._deadline = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self) -> None:
        self._timer = None
        if self._deadline is None:
            return
        loop = asyncio.get_running_loop()
        if loop.time() < self._deadline:
            self._timer = loop.call_at(self._deadline, self._check)
            return
        self.has_timed_out = True
        self._on_timeout()


class Worker:
    """Owns one session of the pool. Unusable after `kill` or `close`."""

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
        """Take a worker from the pool for code with these limits. With stubs, it checks types."""
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
            if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < _LEAST_OPEN_FILES:
                raise GuestError(
                    "a process of the Python sandbox did not start: Too many open files",
                    hint="Raise the limit and try again: ulimit -n 1024",
                ) from error
            raise GuestError(
                f"a process of the Python sandbox did not start: {error}",
                hint="Run `holdfast doctor` to see why.",
            ) from error
        return cls(session, release=release)

    def allow_computing(self, seconds: int) -> None:
        """Limit the processor time of the process from here on, where the kernel supports it. The limit is permanent, so
        such a worker must be killed at the end, not returned to the pool.
        """
        if self._pid is None or sys.platform != "linux":
            return
        with contextlib.suppress(ProcessLookupError):  # already dead; the next turn reports it
            spent = time.clock_gettime(_processor_clock(self._pid))
            _, hard = resource.prlimit(self._pid, resource.RLIMIT_CPU)
            wanted = math.ceil(spent) + seconds
            soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.prlimit(self._pid, resource.RLIMIT_CPU, (soft, hard))

    async def turn(self, step: Awaitable[T], *, seconds: float) -> T:
        """Await one turn of the interpreter. Raises WorkerLost. Kills a worker that takes too long or whose caller is
        cancelled.
        """
        self._watchdog.start(seconds)
        try:
            return await step
        except asyncio.CancelledError:
            await asyncio.shield(self.kill())
            raise
        except monty.MontyCrashedError as error:
            if signal.SIGXCPU.name in str(error):
                raise WorkerTimeout("the sandbox process used up its processor time") from None
            if signal.SIGSYS.name in str(error):
                raise MessageTooLong(
                    "they take more memory than code.value_bytes in config.toml allows"
                ) from None
            if not self._watchdog.has_timed_out:
                raise
            await self.close()
            raise WorkerTimeout(f"the sandbox process did not answer within {seconds:g} s") from None
        except RuntimeError as error:
            raise WorkerLost(str(error)) from error
        finally:
            self._watchdog.stop()

    async def dump(self) -> bytes:
        """Dump the variables between runs. Raises WorkerLost, after which the worker is unusable."""
        return await self._state_turn(self.session.dump())

    async def load(self, dump: bytes) -> None:
        """Load variables. Raises WorkerLost, after which the worker is unusable."""
        await self._state_turn(self.session.load_session(dump))

    async def close(self) -> None:
        """Return the worker to the pool, which resets it. Idempotent."""
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
        """Kill the process, whatever it is doing. Idempotent."""
        if self._is_open:
            self._signal()
            await self.close()

    async def _state_turn(self, step: Awaitable[T]) -> T:
        try:
            return await self.turn(step, seconds=_STATE_SECONDS)
        except monty.MontyError as error:
            raise WorkerLost(str(error)) from error

    def _signal(self) -> None:
        # Once only: after the process has ended, its id may belong to another process.
        pid, self._pid = self._pid, None
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _processor_clock(pid: int) -> int:
    """The id of the Linux clock that counts the processor time of a process."""
    return (~pid << 3) | 2


def grace_seconds(loaded: GuestLimits, requested: GuestLimits) -> float:
    """How much longer to wait than requested: an interpreter that stops itself also reports where the code was."""
    return _GRACE_SECONDS if loaded.seconds <= requested.seconds else 0.0
