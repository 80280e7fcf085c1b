"""The embedded store: every journal in one SQLite database under the home. One process or many, no server.

Writing goes through `writer`, reading through a thread, each with a connection of its own; the event loop waits for no disk
that is not quick.

Passages: where something was said, in any session.
"""

import asyncio
import sqlite3
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import msgspec

import holdfast.store.sqlite.database as database
import holdfast.store.sqlite.index as index
from holdfast.core import Clock, SessionId, check_session_id, new_session_id, pluralize
from holdfast.core.errors import JournalDamaged
from holdfast.core.events import Parent, RecordedEvent, SessionOpened
from holdfast.store.contract import LeaseHolder, SessionSummary
from holdfast.store.home import Home
from holdfast.store.sqlite.content_store import SqliteContentStore
from holdfast.store.sqlite.deletion import (
    remove_files,
    remove_leftovers,
    remove_strays,
    settled_contents,
    write_tombstone,
)
from holdfast.store.sqlite.journal import SqliteJournal
from holdfast.store.sqlite.leases import Leases
from holdfast.store.sqlite.process_locks import ProcessLock
from holdfast.store.sqlite.reader import Reader
from holdfast.store.sqlite.rows import Head, Redact, read_tally
from holdfast.store.sqlite.search import Passage, parse_query, run_query
from holdfast.store.sqlite.sessions import (
    CreateSession,
    IdTaken,
    find,
    list_sessions,
    load,
    load_after,
    load_upto,
)
from holdfast.store.sqlite.startup import explain, prepare
from holdfast.store.sqlite.transaction import Transaction, Work
from holdfast.store.sqlite.wal_prealloc import WalPreallocator
from holdfast.store.sqlite.writer import Writer

Result = TypeVar("Result")


class SqliteStore(SqliteContentStore):
    """Journals on this machine's disk. Made with `start`, ended with `close`."""

    def __init__(
        self,
        *,
        home: Home,
        clock: Clock,
        presence: ProcessLock,
        reader: Reader,
        redact: Redact,
        notices: tuple[str, ...] = (),
    ) -> None:
        writer = Writer(
            connect=partial(database.connect, home.database, timeout_seconds=0),
            explain=partial(explain, home),
            afterwards=WalPreallocator(home.database),
            identify=partial(database.identify, str(home.database)),
        )
        super().__init__(home=home, clock=clock, reader=reader, writer=writer)
        self._home = home
        self._presence = presence
        self._redact = redact
        self._notices = notices
        self._leases = Leases(presence, clock)
        self._journals: weakref.WeakSet[SqliteJournal] = weakref.WeakSet()
        self._is_closed = False

    @classmethod
    async def start(cls, home: Home, *, clock: Clock, redact: Redact = bytes) -> "SqliteStore":
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

    async def create(self, opened: SessionOpened, *, session: SessionId | None = None) -> SqliteJournal:
        if session is None:
            return await self._claim_new(opened)
        return await self._claim(check_session_id(session), opened)

    async def open(self, session: SessionId) -> SqliteJournal:
        key = check_session_id(session)
        fence = await self._taking(key, lambda transaction: self._leases.take(transaction, key))
        try:
            head, history = await self.reading(lambda connection: load(connection, key))
        except BaseException as problem:
            is_damaged = isinstance(problem, JournalDamaged)
            await self.writing(partial(self._let_go, key, fence, is_damaged))
            raise
        return self._journal(key, fence, head, history)

    async def fork(self, session: SessionId, *, at: int, opened: SessionOpened) -> SqliteJournal:
        source = check_session_id(session)
        history = self._known_history(source, at)
        if history is None:
            history = await self.reading(lambda connection: load_upto(connection, source, at))
        opened = msgspec.structs.replace(opened, parent=Parent(session=source, seq=at))
        return await self._claim_new(opened, history=history)

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

    async def summary(self, session: SessionId) -> SessionSummary:
        key = check_session_id(session)
        return await self.reading(lambda connection: read_tally(connection, key).summary)

    async def find(self, reference: str) -> SessionId:
        return await self.reading(lambda connection: find(connection, reference))

    async def delete(self, session: SessionId) -> None:
        await self.sweep_contents(await self.remove(session, reason="deleted"))

    async def remove(self, session: SessionId, *, reason: str) -> frozenset[str]:
        """Delete a session but for its contents: those that it mentioned, and that may be nobody's by now. For this package."""
        key = check_session_id(session)
        now_ms = self._clock.now_ms()

        def work(transaction: Transaction) -> frozenset[str]:
            line = read_tally(transaction, key).summary
            self._leases.require_free(transaction, key)
            return write_tombstone(transaction, line, reason=reason, now_ms=now_ms)

        mentioned = await self.writing(work)
        await self.reading(lambda _: remove_files(self._home, key))
        return mentioned

    async def sweep(self, removed: frozenset[str] = frozenset()) -> int:
        """Remove what a crash left of deleted sessions, and contents that no event mentions, old ones and what was just
        `removed`; how many of those.
        """
        now_ms = self._clock.now_ms()
        await self.reading(partial(remove_leftovers, self._home))
        await self.reading(partial(remove_strays, self.blobs, now_ms))
        settled = await self.reading(lambda connection: settled_contents(connection, now_ms=now_ms))
        return await self.sweep_contents(settled | removed)

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        try:
            for journal in tuple(self._journals):
                await journal.release()
        finally:  # where a lease cannot be given back, it ends with our presence
            await self._reader.call(self._writer.stop)
            await self._reader.close()
            self._presence.close()

    @property
    def home(self) -> Home:
        """Where this store lies."""
        return self._home

    @property
    def notices(self) -> tuple[str, ...]:
        """What the person should know of how the store was started: what was made anew, what was saved."""
        return self._notices

    async def reading(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Have something read; a line of the list that is none costs one line to the person. For this package."""
        try:
            return await super().reading(work)
        except msgspec.MsgspecError:
            await self._rebuild_index()
            return await super().reading(work)

    # -- below here: how the promises are kept

    def _known_history(self, session: SessionId, at: int) -> Sequence[RecordedEvent] | None:
        """What a journal that is open here has in memory already."""
        for journal in self._journals:
            if journal.session == session and 1 <= at <= len(journal.recorded):
                return journal.recorded[:at]
        return None

    async def _rebuild_index(self) -> None:
        count = await self.writing(index.rebuild)
        self._notices += (
            f"the list of sessions was made anew from the journals: {pluralize(count, 'session')}",
        )

    async def _taking(self, session: SessionId, work: Work[Result], *, is_brief: bool = False) -> Result:
        """Have a lease taken. Whoever is cancelled meanwhile does not get it, so it goes back to nobody."""
        is_taken = False

        def taking(transaction: Transaction) -> Result:
            nonlocal is_taken
            result = work(transaction)
            is_taken = True
            return result

        def disown(transaction: Transaction) -> None:
            if is_taken:
                self._leases.disown(transaction, session)

        try:
            return await self._writer.submit(taking, is_brief=is_brief)
        except asyncio.CancelledError:
            # Handed in behind it, so that it runs when the lease is taken, if it ever is.
            self._writer.submit(disown)
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

    async def _claim(
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
        claimed = await self._taking(session, claim, is_brief=not history)
        return self._journal(session, claimed.fence, claimed.head, claimed.history)

    async def _claim_new(
        self, opened: SessionOpened, *, history: Sequence[RecordedEvent] = ()
    ) -> SqliteJournal:
        while True:
            try:
                return await self._claim(new_session_id(self._clock), opened, history=history)
            except IdTaken:
                continue

    def _let_go(self, session: SessionId, fence: int, is_damaged: bool, transaction: Transaction) -> None:
        self._leases.give_back(transaction, session, fence)
        if is_damaged:
            index.mark_damaged(transaction, session)


async def search(store: SqliteStore, text: str, *, limit: int = 20) -> Sequence[Passage]:
    """Where all these words (or words that begin so) were said, newest first. Raises InvalidInput for no words."""
    question = parse_query(text)
    return await store.reading(
        lambda connection: run_query(connection, store.home.search, question, max(limit, 0))
    )
