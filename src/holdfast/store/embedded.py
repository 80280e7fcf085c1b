"""The embedded store: every journal in one SQLite database under the home. One process or many, no server.

Writing goes through one thread (`writer`), reading through another, each with a connection of its own; the event loop
never waits for the disk.
"""

import asyncio
import sqlite3
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import msgspec

from holdfast.core import Clock, SessionId, check_session_id, encode, new_session_id
from holdfast.core.errors import InvalidInput, SessionExists, SessionHeld, StoreUnavailable
from holdfast.core.events import GENESIS, Parent, Recorded, SessionOpened
from holdfast.store import database
from holdfast.store.blobs import Blobs, Draft
from holdfast.store.contract import Holder, SessionSummary
from holdfast.store.database import SQL
from holdfast.store.fold import begin, fold
from holdfast.store.home import Home
from holdfast.store.journal import EmbeddedJournal, check_names, next_head
from holdfast.store.naming import possible_names, the_only
from holdfast.store.presence import Presence
from holdfast.store.records import Redact, chained, encode_entry
from holdfast.store.removal import bury, remove
from holdfast.store.rows import Head, append_records, decode_tally, read_history, read_tally
from holdfast.store.writer import Transaction, Writer

Result = TypeVar("Result")


class EmbeddedStore:
    """Journals on this machine's disk. Made with `start`, ended with `close`."""

    def __init__(
        self,
        *,
        home: Home,
        clock: Clock,
        presence: Presence,
        reader: ThreadPoolExecutor,
        redact: Redact,
    ) -> None:
        self._home = home
        self._clock = clock
        self._presence = presence
        self._reader = reader
        self._redact = redact
        self._blobs = Blobs(home.blobs)
        self._reading: sqlite3.Connection | None = None  # belongs to the reader's thread
        self._journals: weakref.WeakSet[EmbeddedJournal] = weakref.WeakSet()
        self._writer = Writer(
            connect=partial(database.connect, home.database),
            explain=partial(database.explain, path=home.database),
        )
        self._is_closed = False

    @classmethod
    async def start(cls, home: Home, *, clock: Clock, redact: Redact = bytes) -> "EmbeddedStore":
        """Open the store of a home, creating what is missing. `redact` sees the bytes of every event first."""
        reader = ThreadPoolExecutor(max_workers=1, thread_name_prefix="holdfast-reader")
        try:
            presence = await asyncio.get_running_loop().run_in_executor(reader, _prepare, home)
        except BaseException:
            reader.shutdown()
            raise
        return cls(home=home, clock=clock, presence=presence, reader=reader, redact=redact)

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
        fence = await self._writer.submit(lambda transaction: self._take_lease(transaction, key))
        try:
            head, history = await self._read(lambda connection: _load(connection, key))
        except BaseException:
            await asyncio.shield(self._writer.submit(partial(self._drop_lease, key, fence)))
            raise
        return self._journal(key, fence, head, history)

    async def fork(self, session: SessionId, *, at: int, opened: SessionOpened) -> EmbeddedJournal:
        source = check_session_id(session)
        history = await self._read(lambda connection: _load_upto(connection, source, at))
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

        return await self._read(after_it)

    async def holder(self, session: SessionId) -> Holder | None:
        key = check_session_id(session)
        return await self._read(lambda connection: self._holder(connection, key))

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

        return await self._read(listed)

    async def summary(self, session: SessionId) -> SessionSummary:
        key = check_session_id(session)
        return await self._read(lambda connection: read_tally(connection, key).summary)

    async def find(self, reference: str) -> SessionId:
        return await self._read(lambda connection: _find(connection, reference))

    async def delete(self, session: SessionId, *, reason: str = "deleted") -> None:
        key = check_session_id(session)
        now_ms = self._clock.now_ms()

        def work(transaction: Transaction) -> list[str]:
            line = read_tally(transaction, key).summary
            holder = self._holder(transaction, key)
            if holder is not None:
                raise _held(key, holder)
            return bury(transaction, line, reason=reason, now_ms=now_ms)

        gone = await asyncio.shield(self._writer.submit(work))
        await self._read(lambda _: remove(self._home, self._blobs, key, gone))

    async def put_blob(self, content: bytes) -> str:
        draft = self._blobs.draft(content)
        await asyncio.shield(self._writer.submit(partial(self._keep, draft)))
        return draft.digest

    async def blob(self, digest: str) -> bytes:
        return await self._read(lambda connection: self._blobs.read(connection, digest))

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        for journal in tuple(self._journals):
            await journal.release()
        await asyncio.get_running_loop().run_in_executor(self._reader, self._stop)
        self._reader.shutdown()

    # -- below here: how the promises are kept

    async def _read(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        if self._is_closed:
            raise StoreUnavailable("the store is closed")
        return await asyncio.get_running_loop().run_in_executor(self._reader, self._read_now, work)

    def _read_now(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        try:
            if self._reading is None:
                self._reading = database.connect(self._home.database)
                self._reading.execute("PRAGMA busy_timeout = 10000")
            self._reading.execute("BEGIN")  # one point in time for all that is read
            try:
                return work(self._reading)
            finally:
                if self._reading.in_transaction:
                    self._reading.execute("ROLLBACK")
        except sqlite3.Error as problem:
            raise database.explain(problem, self._home.database) from problem

    def _stop(self) -> None:
        self._writer.stop()
        if self._reading is not None:
            self._reading.close()
        self._presence.close()

    def _journal(
        self, session: SessionId, fence: int, head: Head, history: Sequence[Recorded]
    ) -> EmbeddedJournal:
        journal = EmbeddedJournal(
            session=session,
            fence=fence,
            instance=self._presence.token,
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

        def work(transaction: Transaction) -> tuple[int, Head, Recorded]:
            if opened.parent is not None:
                read_tally(transaction, opened.parent.session)  # gone since it was read: SessionNotFound
            if transaction.execute(SQL["is_taken"], (session,)).fetchone():
                raise _IdTaken(f"there is a session {session!r} already", hint="choose another id")
            (record,) = chained(session, [entry], at_ms=at_ms, seq=start.seq, previous=start.hash)
            check_names(transaction, session, [record])
            append_records(transaction, [(record, entry.body)])
            (rank,) = transaction.execute(SQL["rank_of"], (session, record.seq)).fetchone()
            head = next_head(transaction, session, start, [record])
            line = head.tally.summary
            parent = (line.parent.session, line.parent.seq) if line.parent else (None, None)
            transaction.execute(
                SQL["claim_session"], (session, line.name, line.folder, rank, *parent, encode(head.tally))
            )
            return self._grant(transaction, session), head, record

        fence, head, record = await asyncio.shield(self._writer.submit(work))
        return self._journal(session, fence, head, [*history, record])

    def _take_lease(self, transaction: Transaction, session: SessionId) -> int:
        read_tally(transaction, session)
        holder = self._holder(transaction, session)
        if holder is not None:
            raise _held(session, holder)
        return self._grant(transaction, session)

    def _grant(self, transaction: Transaction, session: SessionId) -> int:
        mine = (self._presence.token, self._presence.pid, self._presence.host, self._clock.now_ms())
        (fence,) = transaction.execute(SQL["grant_lease"], (session, *mine)).fetchone()
        return int(fence)

    def _drop_lease(self, session: SessionId, fence: int, transaction: Transaction) -> None:
        transaction.execute(SQL["release_lease"], (session, fence, self._presence.token))

    def _holder(self, connection: sqlite3.Connection | Transaction, session: SessionId) -> Holder | None:
        read_tally(connection, session)
        row = connection.execute(SQL["lease_of"], (session,)).fetchone()
        if row is None or row[1] is None:
            return None
        _, instance, pid, host, since_ms = row
        if not self._presence.is_alive(instance, pid, host):
            return None
        return Holder(pid=pid, host=host, since_ms=since_ms)

    def _keep(self, draft: Draft, transaction: Transaction) -> None:
        self._blobs.write(transaction, draft)


class _IdTaken(SessionExists):
    """The id is claimed; of a generated one, another is generated."""


def _prepare(home: Home) -> Presence:
    home.prepare()
    try:
        database.prepare(home.database)
    except sqlite3.Error as problem:
        raise database.explain(problem, home.database) from problem
    presence = Presence(home.holders)
    presence.sweep()
    return presence


def _load(connection: sqlite3.Connection, session: SessionId) -> tuple[Head, list[Recorded]]:
    history = read_history(connection, session)
    tally = read_tally(connection, session)
    if tally.summary.events != len(history):
        tally = fold(session, history)
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


def _held(session: SessionId, holder: Holder) -> SessionHeld:
    return SessionHeld(
        f"{session!r} is held by process {holder.pid} on {holder.host}",
        hint="close it there, wait for it, or read along",
    )
