"""The turn lock of a session: one holder at a time; others are refused or wait in FIFO order."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from holdfast.core import SessionId
from holdfast.core.errors import HoldfastError, SessionIsClosed, SessionNotReady
from holdfast.session.status import Status


class FifoWaiters:
    """A FIFO queue of waiting tasks."""

    def __init__(self) -> None:
        self._futures: deque[asyncio.Future[None]] = deque()

    def __bool__(self) -> bool:
        """Whether any task waits."""
        return bool(self._futures)

    async def wait(self) -> None:
        """Wait until woken. Raises the error passed to `reject_all`."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._futures.append(future)
        try:
            await future
        finally:
            self._futures.remove(future)

    def wake_first(self) -> None:
        """Wake the first waiter."""
        if self._futures and not self._futures[0].done():
            self._futures[0].set_result(None)

    def reject_all(self, error: HoldfastError) -> None:
        """Raise an error in every waiter."""
        for future in self._futures:
            if not future.done():
                future.set_exception(error)


class TurnLock:
    """Decides who may act on the session: whether it is open here, live and ready, and who holds it."""

    def __init__(self, session: SessionId, status: Status) -> None:
        self._session = session
        self._status = status
        self._waiters = FifoWaiters()
        self.holder: asyncio.Task[object] | None = None
        """The task that holds the session."""
        self._released = asyncio.Event()
        """Set when the holder has released the lock, even if its task continues."""
        self.is_closed = False
        self.is_preparing = False
        """Whether the session's servers are still starting."""

    @property
    def is_busy(self) -> bool:
        """Whether a task holds the session or a turn waits for a person."""
        return self.holder is not None or self._status.has_open_turn

    @asynccontextmanager
    async def acquire(self, *, queue: bool = False) -> AsyncIterator[None]:
        """Hold the session exclusively, for a turn or for what must not happen during one."""
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
                raise SessionNotReady("other messages are waiting", hint="wait as well: queue=True")
        with self.hold():
            yield

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the session exclusively, even while a turn is open."""
        self.holder, self._released = asyncio.current_task(), asyncio.Event()
        try:
            yield
        finally:
            self.holder = None
            self._released.set()
            self._wake_next()

    @contextmanager
    def hold_idle(self) -> Iterator[None]:
        """Hold the session exclusively while no turn runs. One that waits for a person, and a session that is over, do not matter."""
        self.check_not_closed()
        if self.holder is not None or self.is_preparing:
            raise SessionNotReady(f"session {self._session} is busy", hint="wait for its turn, or cancel it")
        with self.hold():
            yield

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """Refuse every turn while the block runs."""
        self.is_preparing = True
        try:
            yield
        finally:
            self.is_preparing = False

    async def cancel_holder(self) -> None:
        """Cancel the holder and wait until it has released the lock."""
        if self.holder is not None:
            released = self._released
            self.holder.cancel()
            await released.wait()

    def reject_waiters(self) -> None:
        """Reject every waiter: the session was closed."""
        self._waiters.reject_all(
            SessionIsClosed(f"session {self._session} was closed", hint="open it again to continue")
        )

    def check_not_closed(self) -> None:
        """Raise SessionIsClosed if this process has released the session."""
        if self.is_closed:
            raise SessionIsClosed(f"session {self._session} is closed", hint="open it again to continue")

    def check_live(self) -> None:
        """Also raise SessionIsClosed if the session has ended for good."""
        self.check_not_closed()
        if self._status.lifecycle in ("completed", "aborted", "failed"):
            raise SessionIsClosed(
                f"session {self._session} was {self._status.lifecycle}",
                hint=f"fork it to continue: holdfast fork {self._session}",
            )

    def check_ready(self) -> None:
        """Also raise SessionNotReady if the session is paused or a turn is open."""
        self.check_live()
        if self.is_preparing:
            raise SessionNotReady(
                f"session {self._session} is starting its servers", hint="wait until it is ready"
            )
        if self._status.lifecycle == "paused":
            raise SessionNotReady(
                f"session {self._session} is paused", hint=f"resume it first: holdfast resume {self._session}"
            )
        if self.is_busy:
            raise SessionNotReady(
                "a turn is running or waits for a person",
                hint="wait for it, answer what it waits for, or cancel it",
            )

    def _wake_next(self) -> None:
        if not self.is_busy:
            self._waiters.wake_first()
