"""A worker: takes jobs from an engine and does what their sessions have to do, one session at a time in each place."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, assert_never

import msgspec

from holdfast.core import PERSON, SessionId
from holdfast.core.errors import (
    HoldfastError,
    LeaseLost,
    SessionHeld,
    SessionNotFound,
    StoreError,
    StoreUnavailable,
)
from holdfast.core.events import ControlRequestApplied, MessagePosted, RecordedEvent
from holdfast.gate import CancelTurn, PostMessage
from holdfast.session import Session
from holdfast.store import PostedRequest, WorkStore
from holdfast.worker.dispatch import Dispatch, NotNow

HELD_SECONDS = 1.0
"""When to look again at a session that another process holds."""
OUTAGE_SECONDS = 2.0
Resume = Callable[[SessionId], Awaitable[Session]]
"""Opens a session in this process, with its own model and policy."""
_Request = PostMessage | CancelTurn
_DECODER: msgspec.json.Decoder[_Request] = msgspec.json.Decoder(_Request)


class Worker:
    """Runs the turns of sessions that a store shares with other workers."""

    def __init__(self, *, store: WorkStore, dispatch: Dispatch, resume: Resume) -> None:
        self._store = store
        self._dispatch = dispatch
        self._resume = resume
        self._stop = asyncio.Event()

    async def run(self, *, places: int) -> None:
        """Work until `stop`. Turns that run then reach their next record, and another worker resumes them."""
        await self._dispatch.run(self.handle, places=places, stop=self._stop)

    def stop(self) -> None:
        """Take nothing new, and let go of what runs."""
        self._stop.set()

    async def handle(self, session: SessionId) -> None:
        """Do what a session has to do. Raises NotNow if it is held elsewhere, the store is away, or this worker stops."""
        if self._stop.is_set():
            raise NotNow
        try:
            live = await self._resume(session)
        except SessionNotFound:
            return  # deleted since
        except SessionHeld:
            raise NotNow(HELD_SECONDS) from None
        except StoreUnavailable:
            raise NotNow(OUTAGE_SECONDS) from None
        try:
            await self._work(live)
        except LeaseLost:
            pass  # another worker took the session over, and has its own job
        except StoreError:
            raise NotNow(OUTAGE_SECONDS) from None
        finally:
            await live.close()

    async def _work(self, live: Session) -> None:
        """Resume the open turn, then carry out the requests in their order; a turn that waits for a person keeps them."""
        requests = list(await self._store.requests(live.id))
        for request in [each for each in requests if isinstance(_decoded(each), CancelTurn)]:
            requests.remove(request)
            await self._carry_out(live, request)
        if live.status.has_open_turn or live.status.can_reopen_turn:
            await self._unless_stopped(live, live.advance())
        for request in requests:
            if live.status.has_open_turn:
                return
            await self._carry_out(live, request)

    async def _carry_out(self, live: Session, posted: PostedRequest) -> None:
        request, error = _decoded(posted), ""
        try:
            match request:
                case None:
                    error = "it is not a request of this version"
                case PostMessage():
                    await self._send(live, posted.id, request)
                case CancelTurn():
                    await live.cancel()
                case _:
                    assert_never(request)
        except StoreError:
            raise
        except HoldfastError as refusal:
            error = str(refusal)
        if error or not isinstance(request, PostMessage):
            action = "unknown" if request is None else str(type(request).__struct_config__.tag)
            applied = ControlRequestApplied(
                request=posted.id, action=action, transport="worker", principal=PERSON, error=error
            )
            await live.record_request(applied)
        await self._store.remove_request(posted.id)

    async def _send(self, live: Session, id: str, request: PostMessage) -> None:
        if id in _messages(live):
            return  # recorded by a worker that died before it removed the request
        await self._unless_stopped(live, live.send(request.text, transport=request.transport, message=id))

    async def _unless_stopped(self, live: Session, turn: Coroutine[Any, Any, object]) -> None:
        """Run a turn to its end, or until this worker stops: then the turn is parked where it is."""
        running = asyncio.create_task(turn)
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait((running, stopping), return_when=asyncio.FIRST_COMPLETED)
            if not running.done():
                await live.close()
                await asyncio.wait((running,))
                raise NotNow
            await running
        finally:
            stopping.cancel()


def _messages(live: Session) -> set[str]:
    """The ids of the messages on record."""
    found: set[str] = set()

    def note(recorded: RecordedEvent) -> None:
        if isinstance(recorded.event, MessagePosted):
            found.add(recorded.event.message)

    live.follow(note)
    return found


def _decoded(posted: PostedRequest) -> _Request | None:
    try:
        return _DECODER.decode(posted.body)
    except msgspec.MsgspecError:
        return None
