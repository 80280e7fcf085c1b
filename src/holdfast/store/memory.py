"""The in-memory twin: the same promises as the embedded store, without a disk. For tests and for throw-away runs."""

import os
import socket
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from holdfast.core import Clock, SessionId, check_session_id, digest_bytes, new_session_id
from holdfast.core.errors import (
    HoldfastError,
    InvalidInput,
    JournalDamaged,
    LeaseLost,
    SessionExists,
    SessionHeld,
    SessionNotFound,
)
from holdfast.core.events import (
    GENESIS,
    AnyEvent,
    Parent,
    RecordedEvent,
    SessionOpened,
    SessionRewound,
)
from holdfast.store.blobs.copy_out import Content, Reflinker, read_span
from holdfast.store.contract import Follower, Hasher, Kept, LeaseHolder, SessionSummary
from holdfast.store.event_log import EventLog
from holdfast.store.sqlite.names import names_in, possible_names, the_only
from holdfast.store.sqlite.rows import chained, encode_entry
from holdfast.store.sqlite.writer import PendingWrite
from holdfast.store.summary import SummaryState, advance_summary, empty_summary, is_activity, summarize


class _Session:
    """One session of the store: its own events, and who holds it."""

    def __init__(self, id: SessionId, inherited: Sequence[RecordedEvent]) -> None:
        self.id = id
        self.recorded = list(inherited)
        self.tally: SummaryState = summarize(id, self.recorded) if inherited else empty_summary(id)
        self.rank = 0
        self.fence = 0
        self.holder: LeaseHolder | None = None


class MemoryJournal:
    """The writer of a session in memory."""

    def __init__(self, store: "MemoryStore", held: _Session) -> None:
        self._store = store
        self._held = held
        self._fence = held.fence
        self._tape = EventLog(held.recorded)

    @property
    def session(self) -> SessionId:
        return self._held.id

    @property
    def recorded(self) -> Sequence[RecordedEvent]:
        return self._tape.recorded

    def follow(self, follower: Follower) -> None:
        self._tape.follow(follower)

    def append(self, *events: AnyEvent, blobs: Sequence[bytes] = ()) -> Coroutine[Any, Any, None]:
        if not (events or blobs):
            return PendingWrite.done()
        try:
            if self._held.fence != self._fence:
                raise LeaseLost(f"the lease of {self.session!r} was given back or taken over")
            self._tape.extend(self._store._record(self._held, events, blobs))
        except HoldfastError as refusal:
            return PendingWrite.failed(refusal)
        return PendingWrite.done()

    def leave(self, event: AnyEvent) -> None:
        if self._held.fence == self._fence:  # else the next append says so
            self._tape.extend(self._store._record(self._held, (event,), ()))

    async def release(self) -> None:
        if self._held.fence == self._fence:
            self._held.fence += 1
            self._held.holder = None


class MemoryIntake:
    """Contents on their way into memory."""

    def __init__(self) -> None:
        self.taken: dict[str, bytes] = {}

    def take(self, descriptor: int, start: int, length: int, *, whole: Hasher | None = None) -> Kept:
        content = read_span(descriptor, start, length)
        if whole is not None:
            whole.update(content)
        digest = digest_bytes(content)
        self.taken[digest] = content
        return Kept(digest=digest, size=len(content))


class MemoryStore:
    """Every promise of a store but the one that needs a disk."""

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._sessions: dict[SessionId, _Session] = {}
        self._blobs: dict[str, bytes] = {}
        self._rank = 0

    async def create(self, opened: SessionOpened, *, session: SessionId | None = None) -> MemoryJournal:
        return self._claim(opened, session, inherited=())

    async def open(self, session: SessionId) -> MemoryJournal:
        return self._hold(self._get(session))

    async def fork(self, session: SessionId, *, at: int, opened: SessionOpened) -> MemoryJournal:
        source = self._get(session)
        if not 1 <= at <= len(source.recorded):
            raise InvalidInput(
                f"{session!r} has the events 1 to {len(source.recorded)}, {at} is not one of them"
            )
        opened = msgspec.structs.replace(opened, parent=Parent(session=source.id, seq=at))
        return self._claim(opened, None, inherited=source.recorded[:at])

    async def read(self, session: SessionId, *, after: int = 0) -> Sequence[RecordedEvent]:
        return self._get(session).recorded[max(after, 0) :]

    async def holder(self, session: SessionId) -> LeaseHolder | None:
        return self._get(session).holder

    async def sessions(
        self, *, limit: int | None = None, folder: str | None = None
    ) -> Sequence[SessionSummary]:
        newest = sorted(self._sessions.values(), key=lambda one: -one.rank)
        lines = [one.tally.summary for one in newest if folder is None or one.tally.summary.folder == folder]
        return lines if limit is None else lines[: max(limit, 0)]

    async def summary(self, session: SessionId) -> SessionSummary:
        return self._get(session).tally.summary

    async def find(self, reference: str) -> SessionId:
        if reference in self._sessions:
            return SessionId(reference)
        wanted = possible_names(reference)
        for one in self._sessions.values():
            if one.tally.summary.name in wanted:
                return one.id
        return the_only(reference, sorted(id for id in self._sessions if id.startswith(reference)))

    async def delete(self, session: SessionId) -> None:
        doomed = self._get(session)
        if doomed.holder is not None:
            raise SessionHeld(f"{session!r} is open in this process", hint="close it first")
        del self._sessions[doomed.id]

    async def put_blob(self, content: bytes) -> str:
        name = digest_bytes(content)
        self._blobs[name] = bytes(content)
        return name

    async def blob(self, digest: str) -> bytes:
        try:
            return self._blobs[digest]
        except KeyError:
            raise JournalDamaged(f"the content {digest!r} is missing") from None

    @asynccontextmanager
    async def intake(self) -> AsyncIterator[MemoryIntake]:
        intake = MemoryIntake()
        yield intake
        self._blobs.update(intake.taken)

    async def contents(self, digests: Sequence[str]) -> Mapping[str, Content]:
        return {digest: Content(digest, await self.blob(digest), Reflinker()) for digest in digests}

    async def close(self) -> None:
        for session in self._sessions.values():
            session.fence += 1
            session.holder = None

    def _get(self, session: SessionId) -> _Session:
        found = self._sessions.get(check_session_id(session))
        if found is None:
            raise SessionNotFound(f"there is no session {session!r}")
        return found

    def _claim(
        self, opened: SessionOpened, session: SessionId | None, inherited: Sequence[RecordedEvent]
    ) -> MemoryJournal:
        claimed = check_session_id(session) if session is not None else new_session_id(self._clock)
        while session is None and claimed in self._sessions:
            claimed = new_session_id(self._clock)
        if claimed in self._sessions:
            raise SessionExists(f"there is a session {claimed!r} already", hint="choose another id")
        new = _Session(claimed, inherited)
        self._record(new, [opened], ())
        self._sessions[claimed] = new
        return self._hold(new)

    def _hold(self, session: _Session) -> MemoryJournal:
        if session.holder is not None:
            raise SessionHeld(f"{session.id!r} is open in this process already", hint="close it there first")
        session.fence += 1
        session.holder = LeaseHolder(
            pid=os.getpid(), host=socket.gethostname(), since_ms=self._clock.now_ms()
        )
        return MemoryJournal(self, session)

    def _record(
        self, session: _Session, events: Sequence[AnyEvent], blobs: Sequence[bytes]
    ) -> list[RecordedEvent]:
        now_ms = self._clock.now_ms()
        entries = [encode_entry(event, bytes) for event in events]
        previous = session.recorded[-1].hash if session.recorded else GENESIS
        records = chained(session.id, entries, at_ms=now_ms, seq=len(session.recorded), previous=previous)
        for name in names_in(entry.event for entry in entries):
            others = [other.tally.summary for other in self._sessions.values() if other is not session]
            if name in {called for other in others for called in (other.name, other.id)}:
                raise SessionExists(f"another session is called {name!r}", hint="choose another name")
        for content in blobs:
            self._blobs[digest_bytes(content)] = bytes(content)
        session.recorded.extend(records)
        if any(isinstance(record.event, SessionRewound) for record in records):
            session.tally = summarize(session.id, session.recorded)
        else:
            session.tally = advance_summary(session.tally, records)
        if any(is_activity(record) for record in records):
            self._rank += 1
            session.rank = self._rank
        return records
