"""A worker: takes jobs from an engine and does what their sessions have to do, one session at a time in each place."""

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from holdfast.core import SessionId
from holdfast.core.errors import (
    HoldfastError,
    LeaseLost,
    SessionHeld,
    SessionNotFound,
    StoreError,
    StoreUnavailable,
    VersionTooOld,
)
from holdfast.core.events import ControlRequestApplied, MessagePosted
from holdfast.gate import PostMessage, decode_request
from holdfast.session import PostedRequestWatch, Session
from holdfast.store import PostedRequest, WorkStore
from holdfast.worker.dispatch import DEFAULT_QUEUE, Dispatch, NotNow
from holdfast.worker.kept_sessions import KeptSessions

HELD_SECONDS = 1.0
"""When to look again at a session that another process holds."""
OUTAGE_SECONDS = 2.0
DRAIN_SECONDS = 30.0
"""How long a worker that stops waits for the calls that run."""
Resume = Callable[[SessionId], Awaitable[Session]]
"""Opens a session in this process, with its own model and policy."""


class Worker:
    """Runs the turns of sessions that a store shares with other workers."""

    def __init__(
        self,
        *,
        store: WorkStore,
        dispatch: Dispatch,
        resume: Resume,
        requests: PostedRequestWatch,
        drain_seconds: float = DRAIN_SECONDS,
    ) -> None:
        self._store = store
        self._dispatch = dispatch
        self._resume = resume
        self._requests = requests
        self._drain_seconds = drain_seconds
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._kept = KeptSessions(0)
        self._running: dict[SessionId, _Running] = {}
        self._messages: weakref.WeakKeyDictionary[Session, _Messages] = weakref.WeakKeyDictionary()

    async def run(self, *, places: int, queues: Sequence[str] = (DEFAULT_QUEUE,)) -> None:
        """Work until `stop`. Turns that run then finish the step that they are at, and another worker resumes them."""
        self._kept = KeptSessions(places)
        try:
            await self._dispatch.run(self.handle, places=places, queues=queues, stop=self._stop)
        finally:
            await self._kept.close()

    def stop(self) -> None:
        """Take nothing new, and let what runs reach its next record. The second call does not wait for it."""
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()

    async def handle(self, session: SessionId) -> None:
        """Do what a session has to do. Raises NotNow if it is held elsewhere, the store is away, or this worker stops."""
        if self._stop.is_set():
            raise NotNow
        if (running := self._running.get(session)) is not None:
            # The job that runs does this one as well, unless it fails.
            running.has_more = True
            await asyncio.wait((running.is_done,), timeout=HELD_SECONDS)
            if running.is_done.done() and running.is_done.result():
                return
            raise NotNow(HELD_SECONDS)
        running = self._running[session] = _Running()
        try:
            while running.has_more:
                running.has_more = False
                await self._do(session, running)
            running.is_done.set_result(True)
        finally:
            del self._running[session]
            if not running.is_done.done():
                running.is_done.set_result(False)

    async def _do(self, session: SessionId, running: "_Running") -> None:
        try:
            live = await self._kept.take(session) or await self._resume(session)
        except SessionNotFound:
            return  # deleted since
        except (SessionHeld, VersionTooOld):  # another worker may be able to
            raise NotNow(HELD_SECONDS) from None
        except StoreUnavailable:
            raise NotNow(OUTAGE_SECONDS) from None
        try:
            await self._work(live)
            while running.has_more:
                running.has_more = False
                await self._work(live)
        except LeaseLost:
            await live.close()
            # Another worker took the session over with this very job. It must not count as done: that one may die as well.
            raise NotNow(HELD_SECONDS) from None
        except StoreError:
            await live.close()
            raise NotNow(OUTAGE_SECONDS) from None
        except BaseException:
            await live.close()
            raise
        else:
            if self._requests.is_applying(
                session
            ):  # it may be cut off in the middle, which opening it repairs
                await live.close()
            else:
                await self._kept.put(live)

    async def _work(self, live: Session) -> None:
        """Carry out the requests, resume the open turn, then send the messages in their order.

        Requests that arrive while a turn runs are carried out by the watch. A turn that waits for a person keeps the messages.
        """
        messages = await self._requests.apply(live)
        if live.status.has_open_turn or live.status.can_reopen_turn:
            await self._unless_stopped(live, live.advance())
            messages = await self._store.requests(live.id)
        for posted in messages:
            request = decode_request(posted.body)
            if live.status.has_open_turn:
                return
            if isinstance(request, PostMessage):
                await self._send(live, posted, request)

    async def _send(self, live: Session, posted: PostedRequest, request: PostMessage) -> None:
        try:
            # Else it was recorded by a worker that died before it removed the request.
            if posted.id not in self._messages.setdefault(live, _Messages()).of(live):
                await self._unless_stopped(
                    live,
                    live.send(
                        request.text,
                        principal=request.principal,
                        transport=request.transport,
                        message=posted.id,
                    ),
                )
        except StoreError:
            raise
        except HoldfastError as refusal:
            applied = ControlRequestApplied(
                request=posted.id,
                action="post-message",
                transport=request.transport,
                principal=request.principal,
                error=str(refusal),
            )
            await live.record_request(applied)
        await self._store.remove_request(posted.id)

    async def _unless_stopped(self, live: Session, turn: Coroutine[Any, Any, object]) -> None:
        """Run a turn to its end, or until this worker stops: then the turn is parked behind the step that it is at."""
        running = asyncio.create_task(turn)
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait((running, stopping), return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                await self._drain(live, running)
            if running.done() and not running.cancelled():  # cancelled: a person ended the turn
                await running
        finally:
            stopping.cancel()

    async def _drain(self, live: Session, running: "asyncio.Task[object]") -> None:
        resting = asyncio.create_task(live.rest())
        hurrying = asyncio.create_task(self._hurry.wait())
        try:
            await asyncio.wait(
                (running, resting, hurrying),
                timeout=self._drain_seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not running.done():
                await live.close()
                await asyncio.wait((running,))
                raise NotNow
        finally:
            resting.cancel()
            hurrying.cancel()


class _Running:
    """A session that a job of this worker has."""

    def __init__(self) -> None:
        self.has_more = True
        """Whether another job came for it."""
        self.is_done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        """Whether everything that came was done."""


class _Messages:
    """The ids of the messages on record, also of those that a rewind undid."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._read = 0

    def of(self, live: Session) -> set[str]:
        """Those of a session, of which only what is new is read."""
        new = live.recorded[self._read :]
        self._read += len(new)
        self._ids.update(each.event.message for each in new if isinstance(each.event, MessagePosted))
        return self._ids
