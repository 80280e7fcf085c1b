"""Sessions that this web server runs: started or continued from a browser, they live on without a tab.

A session is held only while it works and for a while after, so that a terminal can take it up again.
"""

import asyncio
from collections import deque
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from holdfast.app import Runtime
from holdfast.core import PERSON, Escalation, Principal, Response, SessionId
from holdfast.core.errors import HoldfastError, ModelMissing
from holdfast.core.projection import ReplayedHistory
from holdfast.models import ReplyPiece
from holdfast.session import Session, Status, TurnDriver
from holdfast.web.event_feed import EventFeed
from holdfast.web.session_host import TRANSPORT, SessionStart

IDLE_SECONDS = 60.0
"""How long a session is held after its last turn."""


async def _wait_for_files(_: Escalation) -> Response | None:
    """The approver of a hosted session: every browser answers through the files of the session, as any process does."""
    await asyncio.Event().wait()
    return None


class _Hosted:
    """One session, its queue of messages and the task that works through it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.queue: deque[tuple[str, Principal]] = deque()
        self.more = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self.problem = ""


class HostedSessions:
    """The sessions of this server process."""

    is_remote = False

    def __init__(self, runtime: Runtime, feed: EventFeed) -> None:
        self._runtime = runtime
        self._feed = feed
        self._hosted: dict[SessionId, _Hosted] = {}
        self._opening: dict[SessionId, asyncio.Lock] = {}

    def get(self, session: SessionId) -> Session | None:
        """The session, if it is open here."""
        found = self._hosted.get(session)
        return found.session if found is not None else None

    async def start(self, wanted: SessionStart, *, principal: Principal = PERSON) -> SessionId:
        """Start a session with a message."""
        session = await self._runtime.create(
            workspace=wanted.folder or None,
            model=wanted.model or None,
            policy=wanted.policy or None,
            principal=principal,
        )
        self._host(session)
        self._post(session.id, wanted.text, principal)
        return session.id

    async def send(self, session: SessionId, text: str, *, principal: Principal = PERSON) -> None:
        """Send a message to a session that no other process holds. Raises SessionHeld."""
        async with self._opening.setdefault(session, asyncio.Lock()):
            if session not in self._hosted:
                self._host(await self._runtime.resume(session))
            self._post(session, text, principal)

    async def advance(self, session: SessionId) -> None:
        """Continue a turn that waited, in a session that no process holds. Raises ModelMissing if it cannot go on here."""
        async with self._opening.setdefault(session, asyncio.Lock()):
            if session not in self._hosted:
                try:
                    opened = await self._runtime.resume(session)
                except ModelMissing:
                    if not await self._waits_in_code(session):
                        raise  # the turn needs its model: here it would fail, elsewhere it can go on
                    opened = await self._runtime.resume(session, needs_model=False)
                self._host(opened)
            self._hosted[session].more.set()

    async def _waits_in_code(self, session: SessionId) -> bool:
        """Whether the open turn is code that a person ran, which needs no model."""
        turns = Status(ReplayedHistory(await self._runtime.store.read(session))).turns
        return bool(turns) and turns[-1].is_code

    async def close(self) -> None:
        """Close every session; their turns can be resumed."""
        for hosted in list(self._hosted.values()):
            await hosted.session.close()  # first: a turn that is cancelled before it would end, not wait
            if hosted.task is not None:
                hosted.task.cancel()
                await asyncio.gather(hosted.task, return_exceptions=True)
        self._hosted.clear()

    def _host(self, session: Session) -> None:
        hosted = _Hosted(session)
        session.approver, session.approver_name = _wait_for_files, TRANSPORT
        session.on_piece = lambda piece: self._show_piece(session.id, piece)
        session.on_output = lambda text: self._feed.send_text(session.id, "output", text)
        session.receive_message = lambda text, principal: self._post(session.id, text, principal)
        self._hosted[session.id] = hosted
        hosted.task = asyncio.ensure_future(self._work(hosted))

    def _post(self, session: SessionId, text: str, principal: Principal) -> None:
        hosted = self._hosted[session]
        hosted.queue.append((text, principal))
        hosted.more.set()

    def _show_piece(self, session: SessionId, piece: ReplyPiece) -> None:
        self._feed.send_text(session, piece.kind, piece.text)

    async def _work(self, hosted: _Hosted) -> None:
        session = hosted.session
        driver = TurnDriver(session, transport=TRANSPORT)
        try:
            while True:
                try:
                    async with asyncio.timeout(IDLE_SECONDS):
                        await hosted.more.wait()
                except TimeoutError:
                    break
                hosted.more.clear()
                await self._turn(driver.run(None), session)
                while hosted.queue:
                    text, principal = hosted.queue.popleft()
                    await self._turn(driver.run(text, principal=principal), session)
        finally:
            if self._hosted.get(session.id) is hosted:
                del self._hosted[session.id]
            await session.close()

    async def _turn(self, run: Coroutine[Any, Any, object], session: Session) -> None:
        turn = asyncio.ensure_future(run)
        try:
            await asyncio.wait({turn})
        except asyncio.CancelledError:
            turn.cancel()
            await asyncio.gather(turn, return_exceptions=True)
            raise
        if turn.cancelled():
            return  # a person cancelled the turn
        error = turn.exception()
        if isinstance(error, HoldfastError):
            with suppress(HoldfastError):
                await session.note(error.code, str(error))
        elif error is not None:
            raise error
