"""The embedded store: every journal in one SQLite database under the home. One process or many, no server.

Writing goes through one thread (`writer`), reading through another, each with a connection of its own; the event loop
never waits for the disk.
"""

import asyncio
import sqlite3
import weakref
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

import msgspec

import holdfast.store.database as database
import holdfast.store.index as index
from holdfast.core import Clock, SessionId, check_session_id, encode, new_session_id
from holdfast.core.errors import InvalidInput, JournalDamaged, SessionExists
from holdfast.core.events import GENESIS, Parent, Recorded, SessionOpened
from holdfast.store.blobs import Blobs, Draft
from holdfast.store.cloning import Cloner
from holdfast.store.contents import Content
from holdfast.store.contract import Holder, SessionSummary
from holdfast.store.database import SQL
from holdfast.store.fold import begin, fold
from holdfast.store.home import Home
from holdfast.store.intake import Intake, Row
from holdfast.store.journal import EmbeddedJournal, check_names, next_head
from holdfast.store.leases import Leases
from holdfast.store.logroom import LogRoom
from holdfast.store.naming import possible_names, the_only
from holdfast.store.presence import Presence
from holdfast.store.reader import Reader
from holdfast.store.records import Redact, chained, encode_entry
from holdfast.store.removal import (
    bury,
    find_orphans,
    remove_files,
    remove_leftovers,
    settled_contents,
    sweep,
)
from holdfast.store.rows import Head, append_records, damaged, decode_tally, read_history, read_tally
from holdfast.store.starting import explain, prepare
from holdfast.store.writer import Transaction, Work, Writer

Result = TypeVar("Result")


class EmbeddedStore:
    """Journals on this machine's disk. Made with `start`, ended with `close`."""

    def __init__(
        self,
        *,
        home: Home,
        clock: Clock,
        presence: Presence,
        reader: Reader,
        redact: Redact,
        notices: tuple[str, ...] = (),
    ) -> None:
        self._home = home
        self._clock = clock
        self._presence = presence
        self._reader = reader
        self._redact = redact
        self._notices = notices
        self._leases = Leases(presence, clock)
        self._blobs = Blobs(home.blobs, clock)
        self._cloner = Cloner()
        self._journals: weakref.WeakSet[EmbeddedJournal] = weakref.WeakSet()
        self._writer = Writer(
            connect=partial(database.connect, home.database, timeout_seconds=0),
            explain=partial(explain, home),
            idle=LogRoom(home.database),
        )
        self._is_closed = False

    @classmethod
    async def start(cls, home: Home, *, clock: Clock, redact: Redact = bytes) -> "EmbeddedStore":
        """Open the store of a home, creating what is missing. `redact` sees the bytes of every event first."""
        reader = Reader(connect=partial(database.connect, home.database), explain=partial(explain, home))
        try:
            presence, notices = await reader.call(partial(prepare, home, clock.now_ms()))
        except BaseException:
            await reader.close()
            raise
        store = cls(home=home, clock=clock, presence=presence, reader=reader, redact=redact, notices=notices)
        try:
            if not await store.reading(index.is_usable):
                await store._rebuild_index()
        except BaseException:
            await store.close()
            raise
        return store

    async def create(self, opened: SessionOpened, *, session: SessionId | None = None) -> EmbeddedJournal:
        if session is not None:
            return await self._claim(check_session_id(session), opened, history=())
        while True:
            try:
                return await self._claim(new_session_id(self._clock), opened, history=())
            except _IdTaken:
                continue

    async def open(self, session: SessionId) -> EmbeddedJournal:
        key = check_session_id(session)
        fence = await self._taking(key, lambda transaction: self._leases.take(transaction, key))
        try:
            head, history = await self.reading(lambda connection: _load(connection, key))
        except BaseException as problem:
            is_damaged = isinstance(problem, JournalDamaged)
            await self.writing(partial(self._let_go, key, fence, is_damaged))
            raise
        return self._journal(key, fence, head, history)

    async def fork(self, session: SessionId, *, at: int, opened: SessionOpened) -> EmbeddedJournal:
        source = check_session_id(session)
        history = self._known_history(source, at)
        if history is None:
            history = await self.reading(lambda connection: _load_upto(connection, source, at))
        opened = msgspec.structs.replace(opened, parent=Parent(session=source, seq=at))
        while True:
            try:
                return await self._claim(new_session_id(self._clock), opened, history=history)
            except _IdTaken:
                continue

    async def read(self, session: SessionId, *, after: int = 0) -> Sequence[Recorded]:
        key = check_session_id(session)

        def after_it(connection: sqlite3.Connection) -> list[Recorded]:
            read_tally(connection, key)  # a deleted parent still has rows, but is no session
            return read_history(connection, key, after=max(after, 0))

        return await self.reading(after_it)

    async def holder(self, session: SessionId) -> Holder | None:
        key = check_session_id(session)
        return await self.reading(lambda connection: self._leases.holder(connection, key))

    async def sessions(
        self, *, limit: int | None = None, folder: str | None = None
    ) -> Sequence[SessionSummary]:
        rows = -1 if limit is None else max(limit, 0)

        def listed(connection: sqlite3.Connection) -> list[SessionSummary]:
            if folder is None:
                found = connection.execute(SQL["list_sessions"], (rows,))
            else:
                found = connection.execute(SQL["list_folder"], (folder, rows))
            return [decode_tally(body).summary for (body,) in found]

        return await self.reading(listed)

    async def summary(self, session: SessionId) -> SessionSummary:
        key = check_session_id(session)
        return await self.reading(lambda connection: read_tally(connection, key).summary)

    async def find(self, reference: str) -> SessionId:
        return await self.reading(lambda connection: _find(connection, reference))

    async def delete(self, session: SessionId, *, reason: str = "deleted") -> None:
        key = check_session_id(session)
        now_ms = self._clock.now_ms()

        def work(transaction: Transaction) -> frozenset[str]:
            line = read_tally(transaction, key).summary
            self._leases.require_free(transaction, key)
            return bury(transaction, line, reason=reason, now_ms=now_ms)

        mentioned = await self.writing(work)
        await self.reading(lambda _: remove_files(self._home, key))
        await self._sweep(mentioned)

    async def sweep(self) -> int:
        """Remove what a crash left of deleted sessions, and contents that no event mentions; how many of those."""
        await self.reading(partial(remove_leftovers, self._home))
        now_ms = self._clock.now_ms()
        return await self._sweep(
            await self.reading(lambda connection: settled_contents(connection, now_ms=now_ms))
        )

    async def put_blob(self, content: bytes) -> str:
        draft = self._blobs.draft(content)
        await self.writing(partial(self._keep, draft))
        return draft.digest

    async def blob(self, digest: str) -> bytes:
        return await self.reading(lambda connection: self._blobs.read(connection, digest))

    @asynccontextmanager
    async def intake(self) -> AsyncIterator[Intake]:
        intake = Intake(self._blobs, self._cloner)
        try:
            yield intake
            rows = await asyncio.to_thread(intake.settle)
        except BaseException:
            await asyncio.shield(asyncio.to_thread(intake.abandon))
            raise
        if rows:
            await self.writing(partial(self._keep_rows, rows))

    async def contents(self, digests: Sequence[str]) -> Mapping[str, Content]:
        def held(connection: sqlite3.Connection) -> dict[str, Content]:
            return {
                digest: Content(digest, self._blobs.held(connection, digest), self._cloner)
                for digest in digests
            }

        return await self.reading(held)

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        for journal in tuple(self._journals):
            await journal.release()
        await self._reader.call(self._writer.stop)
        await self._reader.close()
        self._presence.close()

    @property
    def blobs(self) -> Blobs:
        """Where contents lie. For this package."""
        return self._blobs

    @property
    def home(self) -> Home:
        """Where this store lies."""
        return self._home

    @property
    def notices(self) -> tuple[str, ...]:
        """What the person should know of how the store was started: what was made anew, what was saved."""
        return self._notices

    async def reading(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Have something read, at one point in time, by the reader's thread. For this package."""
        try:
            return await self._reader.read(work)
        except msgspec.MsgspecError:  # a line of the list that is none
            await self._rebuild_index()
            return await self._reader.read(work)

    async def writing(self, work: Work[Result]) -> Result:
        """Have something written by the writer's thread; it happens even when the wait is cancelled. For this package."""
        return await self._writer.submit(work)

    # -- below here: how the promises are kept

    def _known_history(self, session: SessionId, at: int) -> Sequence[Recorded] | None:
        """What a journal that is open here has in memory already."""
        for journal in self._journals:
            if journal.session == session and 1 <= at <= len(journal.recorded):
                return journal.recorded[:at]
        return None

    async def _sweep(self, digests: frozenset[str]) -> int:
        orphans = await self.reading(partial(find_orphans, self._blobs, digests))
        if orphans:
            await self.writing(partial(sweep, self._blobs, orphans, self._clock.now_ms()))
        return len(orphans)

    async def _rebuild_index(self) -> None:
        count = await self.writing(index.rebuild)
        self._notices += (f"the list of sessions was made anew from the journals: {count} sessions",)

    async def _taking(self, session: SessionId, work: Work[Result]) -> Result:
        """Have a lease taken. Whoever is cancelled meanwhile does not get it, so it goes back to nobody."""
        is_taken = False

        def taking(transaction: Transaction) -> Result:
            nonlocal is_taken
            result = work(transaction)
            is_taken = True
            return result

        try:
            return await self.writing(taking)
        except asyncio.CancelledError:
            # Handed in behind it, so that it runs when the lease is taken, if it ever is.
            self._writer.submit(lambda _: self._leases.disown(session) if is_taken else None)
            raise

    def _journal(
        self, session: SessionId, fence: int, head: Head, history: Sequence[Recorded]
    ) -> EmbeddedJournal:
        journal = EmbeddedJournal(
            session=session,
            fence=fence,
            leases=self._leases,
            history=history,
            head=head,
            writer=self._writer,
            blobs=self._blobs,
            clock=self._clock,
            redact=self._redact,
        )
        self._journals.add(journal)
        return journal

    async def _claim(
        self, session: SessionId, opened: SessionOpened, *, history: Sequence[Recorded]
    ) -> EmbeddedJournal:
        entry = encode_entry(opened, self._redact)
        at_ms = self._clock.now_ms()
        tally = fold(session, history) if history else begin(session)
        start = Head(
            seq=history[-1].seq if history else 0,
            hash=history[-1].hash if history else GENESIS,
            tally=tally,
        )

        has_tried = False

        def work(transaction: Transaction) -> tuple[int, Head, Recorded]:
            nonlocal has_tried
            if opened.parent is not None:
                read_tally(transaction, opened.parent.session)  # gone since it was read: SessionNotFound
            (record,) = chained(session, [entry], at_ms=at_ms, seq=start.seq, previous=start.hash)
            if transaction.execute(SQL["is_taken"], (session,)).fetchone():
                if not (has_tried and self._is_own(transaction, record)):
                    raise _IdTaken(f"there is a session {session!r} already", hint="choose another id")
                head = next_head(transaction, session, start, [record])
                return self._leases.grant(transaction, session), head, record
            check_names(transaction, session, [record])
            has_tried = True
            append_records(transaction, [record], [entry])
            (rank,) = transaction.execute(SQL["rank_of"], (session, record.seq)).fetchone()
            head = next_head(transaction, session, start, [record])
            line = head.tally.summary
            parent = (line.parent.session, line.parent.seq) if line.parent else (None, None)
            transaction.execute(
                SQL["claim_session"], (session, line.name, line.folder, rank, *parent, encode(head.tally))
            )
            return self._leases.grant(transaction, session), head, record

        fence, head, record = await self._taking(session, work)
        return self._journal(session, fence, head, [*history, record])

    def _is_own(self, transaction: Transaction, first: Recorded) -> bool:
        """Whether an id is taken by this very creation, whose first commit only seemed to fail."""
        written = transaction.execute(SQL["event_hash"], (first.session, first.seq)).fetchone()
        return written == (first.hash,) and self._leases.holder(transaction, first.session) is None

    def _let_go(self, session: SessionId, fence: int, is_damaged: bool, transaction: Transaction) -> None:
        self._leases.give_back(transaction, session, fence)
        if is_damaged:
            index.mark_damaged(transaction, session)

    def _keep(self, draft: Draft, transaction: Transaction) -> None:
        self._blobs.write(transaction, draft)

    def _keep_rows(self, rows: Sequence[Row], transaction: Transaction) -> None:
        for row in rows:
            is_in_file = self._blobs.note(transaction, row.digest, row.size, row.content)
            if row.content is None and not is_in_file:  # it was a row already, and stays one
                file = self._blobs.path(row.digest)
                transaction.after_commit.append(partial(file.unlink, missing_ok=True))


class _IdTaken(SessionExists):
    """The id is claimed; of a generated one, another is generated."""


def _load(connection: sqlite3.Connection, session: SessionId) -> tuple[Head, list[Recorded]]:
    history = read_history(connection, session)
    tally = read_tally(connection, session)
    if tally.summary.events != len(history):
        raise damaged(session, len(history) + 1)
    return Head(seq=history[-1].seq, hash=history[-1].hash, tally=tally), history


def _load_upto(connection: sqlite3.Connection, session: SessionId, at: int) -> list[Recorded]:
    events = read_tally(connection, session).summary.events
    if not 1 <= at <= events:
        raise InvalidInput(f"{session!r} has the events 1 to {events}, {at} is not one of them")
    return read_history(connection, session, upto=at)


def _find(connection: sqlite3.Connection, reference: str) -> SessionId:
    if connection.execute(SQL["find_session"], (reference,)).fetchone():
        return SessionId(reference)
    for name in possible_names(reference):
        row = connection.execute(SQL["session_named"], (name,)).fetchone()
        if row is not None:
            return SessionId(row[0])
    rows = connection.execute(SQL["sessions_beginning"], (reference, reference + "\U0010ffff"))
    return the_only(reference, [SessionId(id) for (id,) in rows])
