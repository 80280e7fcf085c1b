"""The turnstile of a session: one at a time is let in; others are refused or stand in line.

The line before a session: whoever waits for the running turn to end, first come, first served.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from holdfast.core import SessionId
from holdfast.core.errors import HoldfastError, SessionClosed, SessionNotReady
from holdfast.session.status import Status


class FifoWaiters:
    """Places in the order they were taken. Nobody is let in before the one in front."""

    def __init__(self) -> None:
        self._futures: deque[asyncio.Future[None]] = deque()

    def __bool__(self) -> bool:
        """Whether anybody waits."""
        return bool(self._futures)

    async def wait(self) -> None:
        """Stand in line until called. Raises what the line was dissolved with."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._futures.append(future)
        try:
            await future
        finally:
            self._futures.remove(future)

    def wake_first(self) -> None:
        """Let the first one in."""
        if self._futures and not self._futures[0].done():
            self._futures[0].set_result(None)

    def reject_all(self, error: HoldfastError) -> None:
        """Send everybody away."""
        for future in self._futures:
            if not future.done():
                future.set_exception(error)


class TurnLock:
    """Who may do something now: whether the session is held, live and ready, and who has it to himself."""

    def __init__(self, session: SessionId, status: Status) -> None:
        self._session = session
        self._status = status
        self._waiters = FifoWaiters()
        self.holder: asyncio.Task[object] | None = None
        """The task that has the session to itself."""
        self._released = asyncio.Event()
        """Set when the holder has left, whatever else its task goes on to do."""
        self.is_closed = False
        self.is_preparing = False
        """Whether what the session needs is still being started."""

    @property
    def is_busy(self) -> bool:
        """Whether somebody is in, or a turn waits for a person."""
        return self.holder is not None or self._status.has_open_turn

    @asynccontextmanager
    async def acquire(self, *, queue: bool = False) -> AsyncIterator[None]:
        """The session to oneself, for a turn or for what must not happen during one."""
        if queue and (self.is_busy or self._waiters):
            self.check_live()
            try:
                await self._waiters.wait()
                self.check_ready()
            except BaseException:
                self._wake_next()
                raise
        else:
            self.check_ready()
            if self._waiters:
                raise SessionNotReady("other messages wait in line", hint="stand in line too: queue=True")
        with self.hold():
            yield

    @contextmanager
    def hold(self) -> Iterator[None]:
        """The session to oneself, also while a turn is open."""
        self.holder, self._released = asyncio.current_task(), asyncio.Event()
        try:
            yield
        finally:
            self.holder = None
            self._released.set()
            self._wake_next()

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """Let nobody in yet."""
        self.is_preparing = True
        try:
            yield
        finally:
            self.is_preparing = False

    async def cancel_holder(self) -> None:
        """Cancel whoever is in, and wait until they are out."""
        if self.holder is not None:
            released = self._released
            self.holder.cancel()
            await released.wait()

    def reject_waiters(self) -> None:
        """Send everybody in line away: the session was closed."""
        self._waiters.reject_all(
            SessionClosed(f"session {self._session} was closed", hint="open it again to go on")
        )

    def check_not_closed(self) -> None:
        """Raise SessionClosed where this process has let the session go."""
        if self.is_closed:
            raise SessionClosed(f"session {self._session} is closed", hint="open it again to go on")

    def check_live(self) -> None:
        """Raise SessionClosed also where the session has ended for good."""
        self.check_not_closed()
        if self._status.lifecycle in ("completed", "aborted", "failed"):
            raise SessionClosed(
                f"session {self._session} was {self._status.lifecycle}", hint="fork it to go on from here"
            )

    def check_ready(self) -> None:
        """Raise SessionNotReady also where the session is paused or a turn is open."""
        self.check_live()
        if self.is_preparing:
            raise SessionNotReady(
                f"session {self._session} is starting its servers", hint="wait until it is ready"
            )
        if self._status.lifecycle == "paused":
            raise SessionNotReady(f"session {self._session} is paused", hint="resume it first")
        if self.is_busy:
            raise SessionNotReady(
                "a turn is running or waits for a person", hint="wait for it, answer what waits, or cancel it"
            )

    def _wake_next(self) -> None:
        if not self.is_busy:
            self._waiters.wake_first()
