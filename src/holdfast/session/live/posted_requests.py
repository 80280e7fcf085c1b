"""Control requests that a shared store keeps, carried out by the process that holds the session, wherever it runs.

Each has an id, and the record of its result carries it, so a request is carried out once even if a process dies in between.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from holdfast.core import PERSON, SessionId, end_task
from holdfast.core.errors import HoldfastError, StoreError
from holdfast.core.events import ControlRequestApplied
from holdfast.gate import AnyControlRequest, PostMessage, RaiseBudget, RevokeGrant, decode_request
from holdfast.session.live.control import carry_out
from holdfast.session.live.live_sessions import LiveSessions
from holdfast.session.session import Session
from holdfast.store import PostedRequest, WorkStore


class PostedRequestWatch:
    """Carries out what is posted to the live sessions of this process, as soon as it is posted."""

    def __init__(self, store: WorkStore, live: LiveSessions) -> None:
        self._store = store
        self._live = live
        self._applying: dict[SessionId, asyncio.Lock] = {}
        self._task: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self) -> None:
        """Start to watch."""
        self._task = asyncio.create_task(self._run(), name="holdfast-requests")

    async def close(self) -> None:
        """Stop. Idempotent."""
        if self._task is not None:
            await end_task(self._task)
            self._task = None
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def is_applying(self, session: SessionId) -> bool:
        """Whether something that was posted to a session is being carried out."""
        return (lock := self._applying.get(session)) is not None and lock.locked()

    async def apply(self, session: Session) -> Sequence[PostedRequest]:
        """Carry out what was posted to a session. Returns the messages, which only a worker takes, when the session rests."""
        lock = self._applying.setdefault(session.id, asyncio.Lock())
        messages: list[PostedRequest] = []
        try:
            async with lock:
                for posted in await self._store.requests(session.id):
                    if _waits_for_rest(session, posted):
                        messages.append(posted)
                        continue
                    if session.is_closed:
                        break
                    await self._apply_one(session, posted, decode_request(posted.body))
            return messages
        finally:
            if not lock.locked():
                self._applying.pop(session.id, None)

    async def _apply_one(
        self, session: Session, posted: PostedRequest, request: AnyControlRequest | None
    ) -> None:
        if posted.id not in _applied(session):
            error = result = ""
            try:
                match request:
                    case None:
                        error = "it is not a request of this version"
                    case RaiseBudget() | RevokeGrant():
                        await session.apply_request(posted.id, request)
                    case _:
                        result = await carry_out(session, request)
            except StoreError:
                raise  # it stays posted
            except HoldfastError as refusal:
                error = str(refusal)
            except OSError as problem:
                error = f"it failed: {problem.strerror}"
            await session.record_request(
                ControlRequestApplied(
                    request=posted.id,
                    action="unknown" if request is None else str(type(request).__struct_config__.tag),
                    transport="worker" if request is None else request.transport,
                    principal=PERSON if request is None else request.principal,
                    error=error,
                    result=result,
                )
            )
        if not session.is_closed:
            await self._store.remove_request(posted.id)

    async def _run(self) -> None:
        with self._store.watch_requests() as watch:
            while True:
                await watch.changed()
                live = {session.id: session for session in self._live.all()}
                with suppress(StoreError):  # asked again after the outage
                    requested = await self._store.requested(list(live)) if live else {}
                    for id, posted in requested.items():
                        if not all(_waits_for_rest(live[id], each) for each in posted):
                            self._begin(live[id])

    def _begin(self, session: Session) -> None:
        task = asyncio.ensure_future(self._apply_or_leave(session))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _apply_or_leave(self, session: Session) -> None:
        with suppress(
            HoldfastError
        ):  # the session was closed, or the store is away: what is left stays posted
            await self.apply(session)


def _waits_for_rest(session: Session, posted: PostedRequest) -> bool:
    """Whether it is a message for a worker, which sends it when the session rests."""
    return session.receive_message is None and isinstance(decode_request(posted.body), PostMessage)


def _applied(session: Session) -> set[str]:
    """The ids of the requests whose result is on record."""
    events = (recorded.event for recorded in session.recorded)
    return {event.request for event in events if isinstance(event, ControlRequestApplied)}
