"""Sessions that a worker keeps assembled without their leases: the next job of one need not read and replay its journal.

Any other process can take such a session meanwhile. Then it is closed here, and opened as if it had not been kept.
"""

import asyncio
import weakref
from collections import OrderedDict

from holdfast.core import SessionId
from holdfast.core.errors import StoreError
from holdfast.session import Session

KEPT_SECONDS = 60.0
"""Since it was opened: what is read only then, such as the policy of its project, is never older."""


class KeptSessions:
    """The sessions that were used last, at most some of them and not for long."""

    def __init__(self, limit: int, *, seconds: float = KEPT_SECONDS) -> None:
        self._limit = limit
        self._seconds = seconds
        self._until: weakref.WeakKeyDictionary[Session, float] = weakref.WeakKeyDictionary()
        self._kept: OrderedDict[SessionId, tuple[Session, asyncio.TimerHandle]] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()

    async def take(self, id: SessionId) -> Session | None:
        """The session with its lease; None if it is not kept, or another process held it since."""
        if (session := self._remove(id)) is None:
            return None
        try:
            if await session.wake():
                return session
        except BaseException:
            self._close(session)
            raise
        await session.close()
        return None

    async def put(self, session: Session) -> None:
        """Release the lease of a session, and keep the rest if it has nothing to do."""
        loop = asyncio.get_running_loop()
        until = self._until.setdefault(session, loop.time() + self._seconds)
        try:
            is_kept = self._limit > 0 and loop.time() < until and await session.suspend()
        except StoreError:
            is_kept = False
        if not is_kept:
            await session.close()
            return
        timer = loop.call_at(until, self._expire, session.id)
        self._kept[session.id] = session, timer
        while len(self._kept) > self._limit:
            self._expire(next(iter(self._kept)))

    async def close(self) -> None:
        """Close all of them. Idempotent."""
        for id in tuple(self._kept):
            self._expire(id)
        await asyncio.gather(*self._closing, return_exceptions=True)

    def _remove(self, id: SessionId) -> Session | None:
        session, timer = self._kept.pop(id, (None, None))
        if timer is not None:
            timer.cancel()
        return session

    def _expire(self, id: SessionId) -> None:
        if (session := self._remove(id)) is not None:
            self._close(session)

    def _close(self, session: Session) -> None:
        task = asyncio.ensure_future(session.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
