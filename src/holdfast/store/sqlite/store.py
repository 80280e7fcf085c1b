"""The SQLite store: all journals in one database in the home, used by any number of processes without a server.

`writer` and `reader` have a connection each, so that the event loop never waits for a slow disk.
"""

import asyncio
import sqlite3
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

import holdfast.store.recovery.verify as verification
import holdfast.store.sqlite.archive as archive
import holdfast.store.sqlite.database as database
import holdfast.store.sqlite.index as index
import holdfast.store.sqlite.stream as stream
import holdfast.store.sqlite.usage as usage
from holdfast.core import Clock, SessionId, check_session_id, new_session_id, pluralize
from holdfast.core.errors import JournalDamaged
from holdfast.core.events import Parent, RecordedEvent, SessionOpened
from holdfast.store.contract import (
    ArchiveLimits,
    ArchiveManifest,
    ChangeShares,
    FindSigner,
    Inspection,
    LeaseHolder,
    Passage,
    PrepareArrival,
    Redact,
    SessionPage,
    SessionSummary,
    Shares,
    SignArchive,
    StoreWatch,
    StreamedEvent,
    WaitingEscalation,
)
from holdfast.store.derived.usage import UsageTotal
from holdfast.store.history import Head
from holdfast.store.home import Home
from holdfast.store.names import IdTaken
from holdfast.store.sqlite.blob_store import SqliteBlobStore
from holdfast.store.sqlite.deletion import (
    erase_traces,
    remove_files,
    remove_leftovers,
    remove_strays,
    settled_blobs,
    write_tombstone,
)
from holdfast.store.sqlite.journal import SqliteJournal
from holdfast.store.sqlite.leases import Leases
from holdfast.store.sqlite.log_watch import watch_log
from holdfast.store.sqlite.process_locks import ProcessLock
from holdfast.store.sqlite.reader import Reader
from holdfast.store.sqlite.rows import Connection, read_summary_state
from holdfast.store.sqlite.search import parse_query, run_query
from holdfast.store.sqlite.sessions import (
    CreateSession,
    find,
    list_sessions,
    load,
    load_after,
    load_upto,
)
from holdfast.store.sqlite.shares import change_shares, read_shares
from holdfast.store.sqlite.startup import explain, prepare
from holdfast.store.sqlite.transaction import Transaction, Work
from holdfast.store.sqlite.wal_prealloc import WalPreallocator
from holdfast.store.sqlite.writer import Writer

Result = TypeVar("Result")


class SqliteStore(SqliteBlobStore):
    """The store on disk. Created by `start`, ended by `close`."""

    def __init__(
        self,
        *,
        home: Home,
        clock: Clock,
        process_lock: ProcessLock,
        reader: Reader,
        redact: Redact,
        notices: tuple[str, ...] = (),
    ) -> None:
        writer = Writer(
            connect=partial(database.connect, home.database, timeout_seconds=0),
            explain=partial(explain, home),
            maintenance=WalPreallocator(home.database),
            identify=partial(database.identify, str(home.database)),
        )
        super().__init__(home=home, clock=clock, reader=reader, writer=writer)
        self._process_lock = process_lock
        self._redact = redact
        self._notices = notices
        self._leases = Leases(process_lock, clock)
        self._journals: weakref.WeakSet[SqliteJournal] = weakref.WeakSet()
        self._is_closed = False

    @classmethod
    async def start(cls, home: Home, *, clock: Clock, redact: Redact = bytes) -> "SqliteStore":
        """Open the store of a home and create what is missing. `redact` processes the bytes of every event first."""
        reader = Reader(connect=partial(database.connect, home.database), explain=partial(explain, home))
        try:
            process_lock, notices = await reader.call(partial(prepare, home, clock.now_ms()))
        except BaseException:
            await reader.close()
            raise
        store = cls(
            home=home, clock=clock, process_lock=process_lock, reader=reader, redact=redact, notices=notices
        )
        try:
            if not await store.reading(index.is_usable):
                await store._rebuild_index()
        except BaseException:
            await store.close()
            raise
        return store

    async def create(self, opened: SessionOpened, *, session: SessionId | None = None) -> SqliteJournal:
        if session is None:
            return await self._create_new(opened)
        return await self._create(check_session_id(session), opened)

    async def open(self, session: SessionId) -> SqliteJournal:
        key = check_session_id(session)
        fence = await self._take_lease(key, lambda transaction: self._leases.take(transaction, key))
        try:
            head, history = await self.reading(lambda connection: load(connection, key))
        except BaseException as problem:
            is_damaged = isinstance(problem, JournalDamaged)
            await self.writing(partial(self._release_lease, key, fence, is_damaged))
            raise
        return self._journal(key, fence, head, history)

    async def fork(self, session: SessionId, *, at: int, opened: SessionOpened) -> SqliteJournal:
        source = check_session_id(session)
        history = self._known_history(source, at)
        if history is None:
            history = await self.reading(lambda connection: load_upto(connection, source, at))
        opened = msgspec.structs.replace(opened, parent=Parent(session=source, seq=at))
        return await self._create_new(opened, history=history)

    async def read(self, session: SessionId, *, after: int = 0) -> Sequence[RecordedEvent]:
        key = check_session_id(session)
        return await self.reading(lambda connection: load_after(connection, key, after))

    async def holder(self, session: SessionId) -> LeaseHolder | None:
        key = check_session_id(session)
        return await self.reading(lambda connection: self._leases.holder(connection, key))

    async def sessions(
        self, *, limit: int | None = None, folder: str | None = None
    ) -> Sequence[SessionSummary]:
        return await self.reading(partial(list_sessions, limit=limit, folder=folder))

    async def session_page(
        self,
        *,
        before: str | None = None,
        limit: int = 50,
        folder: str | None = None,
        activity: Literal["processing", "waiting"] | None = None,
    ) -> SessionPage:
        return await self.reading(
            partial(stream.page_sessions, before=before, limit=limit, folder=folder, activity=activity)
        )

    async def waiting(self, session: SessionId | None = None) -> Sequence[WaitingEscalation]:
        key = check_session_id(session) if session is not None else None
        return await self.reading(lambda connection: stream.read_waiting(connection, key))

    async def last_row(self) -> int:
        return await self.reading(stream.last_row)

    async def events_after(self, row: int, *, limit: int = 1000) -> Sequence[StreamedEvent]:
        return await self.reading(lambda connection: stream.read_events_after(connection, row, limit))

    def watch(self) -> AbstractContextManager[StoreWatch]:
        return watch_log(self._home.database)

    async def summary(self, session: SessionId) -> SessionSummary:
        key = check_session_id(session)
        return await self.reading(lambda connection: read_summary_state(connection, key).summary)

    async def find(self, reference: str) -> SessionId:
        return await self.reading(lambda connection: find(connection, reference))

    async def shares(self, tree: SessionId) -> Shares:
        key = check_session_id(tree)
        return await self.reading(lambda connection: read_shares(connection, key))

    async def change_shares(self, tree: SessionId, change: ChangeShares) -> Shares:
        key = check_session_id(tree)
        return await self._writer.submit(partial(change_shares, key, change), may_run_inline=True)

    async def search(self, text: str, *, limit: int = 20) -> Sequence[Passage]:
        query = parse_query(text)
        return await self.reading(
            lambda connection: run_query(connection, self._home.search, query, max(limit, 0))
        )

    async def usage(self, *, since_day: str = "") -> Sequence[UsageTotal]:
        return await self._derived(partial(usage.read_totals, self._home, since_day))

    async def session_usage(
        self, *, since_day: str = "", session: SessionId | None = None
    ) -> Sequence[UsageTotal]:
        key = check_session_id(session) if session is not None else None
        return await self._derived(partial(usage.read_parts, self._home, since_day, key))

    async def _derived(self, work: Callable[[], Result]) -> Result:
        """Run something on a thread and a connection of its own."""
        try:
            return await asyncio.to_thread(work)
        except (sqlite3.Error, OSError) as problem:
            raise explain(self._home, problem) from problem

    def _is_idle(self, connection: Connection) -> bool:
        return self._leases.is_idle(connection)

    async def delete(self, session: SessionId) -> None:
        await self.sweep_blobs(await self.remove(session, reason="deleted"))
        await self._reader.call(partial(erase_traces, self._home, self._is_idle))

    async def remove(self, session: SessionId, *, reason: str) -> frozenset[str]:
        key = check_session_id(session)
        now_ms = self._clock.now_ms()

        def work(transaction: Transaction) -> frozenset[str]:
            line = read_summary_state(transaction, key).summary
            self._leases.require_free(transaction, key)
            return write_tombstone(transaction, line, reason=reason, now_ms=now_ms)

        mentioned = await self.writing(work)
        await self.reading(lambda _: remove_files(self._home, key))
        return mentioned

    async def sweep(self, removed: frozenset[str] = frozenset()) -> int:
        now_ms = self._clock.now_ms()
        await self.reading(partial(remove_leftovers, self._home))
        await self.reading(partial(remove_strays, self.blobs, now_ms))
        settled = await self.reading(lambda connection: settled_blobs(connection, now_ms=now_ms))
        swept = await self.sweep_blobs(settled | removed)
        await self._reader.call(partial(erase_traces, self._home, self._is_idle))
        return swept

    async def verify(self, session: SessionId) -> Inspection:
        return await verification.verify(self, session)

    async def verify_all(self) -> Sequence[Inspection]:
        return await verification.verify_all(self)

    async def rebuild_index(self) -> int:
        return await verification.rebuild_index(self)

    async def export_session(
        self, session: SessionId, path: Path, *, now_ms: int, sign: SignArchive | None = None
    ) -> ArchiveManifest:
        return await archive.export_session(self, session, path, now_ms=now_ms, sign=sign)

    async def import_session(
        self,
        path: Path,
        *,
        now_ms: int,
        prepare: PrepareArrival | None = None,
        limits: ArchiveLimits | None = None,
        find_signer: FindSigner | None = None,
    ) -> SessionId:
        return await archive.import_session(
            self, path, now_ms=now_ms, prepare=prepare, limits=limits, find_signer=find_signer
        )

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        try:
            for journal in tuple(self._journals):
                await journal.release()
        finally:  # a lease that cannot be released ends with the process lock
            await self._reader.call(self._writer.stop)
            await self._reader.close()
            self._process_lock.close()

    @property
    def notices(self) -> tuple[str, ...]:
        return self._notices

    async def reading(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Run a read. If a row of the session list is damaged, rebuild the list first. For this package."""
        try:
            return await super().reading(work)
        except msgspec.MsgspecError:
            await self._rebuild_index()
            return await super().reading(work)

    def _known_history(self, session: SessionId, at: int) -> Sequence[RecordedEvent] | None:
        """Return the events of a journal that is open in this process."""
        for journal in self._journals:
            if journal.session == session and 1 <= at <= len(journal.recorded):
                return journal.recorded[:at]
        return None

    async def _rebuild_index(self) -> None:
        count = await self.writing(index.rebuild)
        self._notices += (f"the session list was rebuilt from the journals: {pluralize(count, 'session')}",)

    async def _take_lease(
        self, session: SessionId, work: Work[Result], *, may_run_inline: bool = False
    ) -> Result:
        """Run a job that takes a lease. If the caller is cancelled, the lease is abandoned."""
        is_taken = False

        def taking(transaction: Transaction) -> Result:
            nonlocal is_taken
            result = work(transaction)
            is_taken = True
            return result

        def abandon(transaction: Transaction) -> None:
            if is_taken:
                self._leases.abandon(transaction, session)

        try:
            return await self._writer.submit(taking, may_run_inline=may_run_inline)
        except asyncio.CancelledError:
            # Submitted after the job, so that it runs when the lease is taken, if at all.
            self._writer.submit(abandon)
            raise

    def _journal(
        self, session: SessionId, fence: int, head: Head, history: Sequence[RecordedEvent]
    ) -> SqliteJournal:
        journal = SqliteJournal(
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

    async def _create(
        self, session: SessionId, opened: SessionOpened, *, history: Sequence[RecordedEvent] = ()
    ) -> SqliteJournal:
        claim = CreateSession(
            session,
            opened,
            history=history,
            at_ms=self._clock.now_ms(),
            leases=self._leases,
            redact=self._redact,
        )
        claimed = await self._take_lease(session, claim, may_run_inline=not history)
        return self._journal(session, claimed.fence, claimed.head, claimed.history)

    async def _create_new(
        self, opened: SessionOpened, *, history: Sequence[RecordedEvent] = ()
    ) -> SqliteJournal:
        while True:
            try:
                return await self._create(new_session_id(self._clock), opened, history=history)
            except IdTaken:
                continue

    def _release_lease(
        self, session: SessionId, fence: int, is_damaged: bool, transaction: Transaction
    ) -> None:
        self._leases.release(transaction, session, fence)
        if is_damaged:
            index.mark_damaged(transaction, session)
