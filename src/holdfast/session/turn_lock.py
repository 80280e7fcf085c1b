"""The turnstile of a session: one at a time is let in; others are refused or stand in line.

The line before a session: whoever waits for the running turn to end, first come, first served.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from holdfast.core import SessionId
from holdfast.core.errors import HoldfastError, SessionIsClosed, SessionNotReady
from holdfast.session.status import Status


class FifoWaiters:
    """Places in the order they were taken. Nobody is let in before the one in front."""

    def __init__(self) -> None:
        self._places: deque[asyncio.Future[None]] = deque()

    def __bool__(self) -> bool:
        """Whether anybody waits."""
        return bool(self._places)

    async def wait(self) -> None:
        """Stand in line until called. Raises what the line was dissolved with."""
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._places.append(place)
        try:
            await place
        finally:
            self._places.remove(place)

    def call_first(self) -> None:
        """Let the first one in."""
        if self._places and not self._places[0].done():
            self._places[0].set_result(None)

    def dissolve(self, error: HoldfastError) -> None:
        """Send everybody away."""
        for place in self._places:
            if not place.done():
                place.set_exception(error)


class TurnLock:
    """Who may do something now: whether the session is held, live and ready, and who has it to himself."""

    def __init__(self, session: SessionId, status: Status) -> None:
        self._session = session
        self._status = status
        self._line = FifoWaiters()
        self.holder: asyncio.Task[object] | None = None
        """The task that has the session to itself."""
        self._left = asyncio.Event()
        """Set when the holder has left, whatever else its task goes on to do."""
        self.is_closed = False
        self.is_preparing = False
        """Whether what the session needs is still being started."""

    @property
    def is_busy(self) -> bool:
        """Whether somebody is in, or a turn waits for a person."""
        return self.holder is not None or self._status.has_open_turn

    @asynccontextmanager
    async def place(self, *, queue: bool = False) -> AsyncIterator[None]:
        """The session to oneself, for a turn or for what must not happen during one."""
        if queue and (self.is_busy or self._line):
            self.check_live()
            try:
                await self._line.wait()
                self.check_ready()
            except BaseException:
                self._call_next()
                raise
        else:
            self.check_ready()
            if self._line:
                raise SessionNotReady("other messages wait in line", hint="stand in line too: queue=True")
        with self.held():
            yield

    @contextmanager
    def held(self) -> Iterator[None]:
        """The session to oneself, also while a turn is open."""
        self.holder, self._left = asyncio.current_task(), asyncio.Event()
        try:
            yield
        finally:
            self.holder = None
            self._left.set()
            self._call_next()

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """Let nobody in yet."""
        self.is_preparing = True
        try:
            yield
        finally:
            self.is_preparing = False

    async def clear(self) -> None:
        """Cancel whoever is in, and wait until they are out."""
        if self.holder is not None:
            left = self._left
            self.holder.cancel()
            await left.wait()

    def dissolve(self) -> None:
        """Send everybody in line away: the session was closed."""
        self._line.dissolve(
            SessionIsClosed(f"session {self._session} was closed", hint="open it again to go on")
        )

    def check_held(self) -> None:
        """Raise SessionClosed where this process has let the session go."""
        if self.is_closed:
            raise SessionIsClosed(f"session {self._session} is closed", hint="open it again to go on")

    def check_live(self) -> None:
        """Raise SessionClosed also where the session has ended for good."""
        self.check_held()
        if self._status.lifecycle in ("completed", "aborted", "failed"):
            raise SessionIsClosed(
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

    def _call_next(self) -> None:
        if not self.is_busy:
            self._line.call_first()
