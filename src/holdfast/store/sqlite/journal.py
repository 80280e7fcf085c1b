"""The journal of a session in the embedded store: what its holder appends, and how that becomes rows."""

import asyncio
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any

from holdfast.core import Clock, SessionId, Value, encode
from holdfast.core.errors import InvalidInput, SessionExists
from holdfast.core.events import AnyEvent, RecordedEvent, SessionRewound
from holdfast.store.blobs.store import Blobs, Draft
from holdfast.store.contract import Follower
from holdfast.store.event_log import EventLog
from holdfast.store.sqlite.database import SQL
from holdfast.store.sqlite.leases import Leases
from holdfast.store.sqlite.names import NAMING, names_in
from holdfast.store.sqlite.rows import (
    Entry,
    Head,
    Redact,
    append_records,
    chained,
    encode_entry,
    read_history,
)
from holdfast.store.sqlite.transaction import Transaction
from holdfast.store.sqlite.writer import PendingWrite, Writer
from holdfast.store.summary import SummaryState, advance_summary, is_activity, summarize

BRIEF_BYTES = 64 * 1024
"""Fewer are written in no time."""


class SqliteJournal:
    """The one writer of a session. Made by the store, which has taken the lease."""

    def __init__(
        self,
        *,
        session: SessionId,
        fence: int,
        leases: Leases,
        history: Sequence[RecordedEvent],
        head: Head,
        writer: Writer,
        blobs: Blobs,
        clock: Clock,
        redact: Redact,
    ) -> None:
        self._session = session
        self._fence = fence
        self._leases = leases
        self._tape = EventLog(history)
        self._head = head  # set by whoever holds the pen alone, as the next
        self._failures = 0
        self._writer = writer
        self._blobs = blobs
        self._clock = clock
        self._redact = redact
        self._latest: asyncio.Future[None] | None = None
        self._left: list[Entry] = []
        """Events that go with the next append."""
        self._lost: BaseException | None = None
        """Why events that were left could not be recorded; told once."""
        self._released: asyncio.Future[None] | None = None

    @property
    def session(self) -> SessionId:
        return self._session

    @property
    def recorded(self) -> Sequence[RecordedEvent]:
        return self._tape.recorded

    def follow(self, follower: Follower) -> None:
        self._tape.follow(follower)

    def append(self, *events: AnyEvent, blobs: Sequence[bytes] = ()) -> Coroutine[Any, Any, None]:
        # Encoded here and now: what the caller changes afterwards is not what is recorded.
        try:
            entries = [encode_entry(event, self._redact) for event in events]
        except InvalidInput as refusal:
            return PendingWrite.failed(refusal)
        if self._left and (blobs or names_in(events)):
            self._write_left()  # what may be refused takes nothing along
        if self._lost is not None:
            problem, self._lost = self._lost, None
            return PendingWrite.failed(problem)
        if not (entries or blobs or self._left):
            return PendingWrite.done()
        return PendingWrite(self._write(entries, blobs))

    def leave(self, event: AnyEvent) -> None:
        if not self._left:
            self._writer.reminder.remind(self._write_left)
        self._left.append(encode_entry(event, self._redact))

    def _write_left(self) -> None:
        if self._left:
            self._write([]).add_done_callback(self._hear)

    def _hear(self, written: "asyncio.Future[None]") -> None:
        if not written.cancelled():
            self._lost = self._lost or written.exception()

    def _write(self, new: Sequence[Entry], blobs: Sequence[bytes] = ()) -> "asyncio.Future[None]":
        """Hand in what was left and what is new; all of it is recorded or nothing."""
        entries, self._left = [*self._left, *new], []
        at_ms = self._clock.now_ms()
        drafts = [self._blobs.draft(content) for content in blobs]
        foreseen = None
        if self._latest is None or self._latest.done():  # else the end of the journal is not known yet
            foreseen = _foresee(self._session, self._head, at_ms, entries)
        records: list[RecordedEvent] = []

        def work(transaction: Transaction) -> None:
            records[:] = self._record(transaction, at_ms, entries, drafts, foreseen)

        is_small = not drafts and sum([len(entry.body) for entry in entries]) < BRIEF_BYTES
        is_rewind = foreseen.head is None if foreseen is not None else _has_rewind(entries)
        self._latest = self._writer.submit(
            work, tell=lambda _: self._tape.extend(records), is_brief=is_small and not is_rewind
        )
        return self._latest

    async def release(self) -> None:
        if self._released is None:
            self._write_left()
            self._released = self._writer.submit(
                lambda transaction: self._leases.give_back(transaction, self._session, self._fence),
                is_brief=True,
            )
        await asyncio.shield(self._released)

    def _record(
        self,
        transaction: Transaction,
        at_ms: int,
        entries: Sequence[Entry],
        drafts: Sequence[Draft],
        foreseen: "_Foreseen | None",
    ) -> list[RecordedEvent]:
        head: Head | None = transaction.staged.get(self)
        unheard: list[RecordedEvent] = []
        if head is None:
            self._leases.check(transaction, self._session, self._fence)
            head, unheard = self._current(transaction)
        if unheard and self._is_written(unheard, at_ms, entries):
            records, unheard = unheard, []
        else:
            if foreseen is None or head is not foreseen.behind:
                foreseen = _foresee(self._session, head, at_ms, entries)
            records = foreseen.records
            check_names(transaction, self._session, records)
            for draft in drafts:
                self._blobs.write(transaction, draft)
            append_records(transaction, records, entries)
            head = foreseen.head or next_head(transaction, self._session, head, records)
        self._stage(transaction, head)
        if any(map(is_activity, records)):
            transaction.moved.add(self._session)
        return [*unheard, *records]

    def _current(self, transaction: Transaction) -> tuple[Head, list[RecordedEvent]]:
        """Where the journal ends, and events that are on the disk though their commit seemed to fail."""
        if transaction.failures == self._failures:
            return self._head, []
        unheard = read_history(transaction, self._session, after=self._head.seq)
        head = next_head(transaction, self._session, self._head, unheard)
        transaction.after_commit.append(partial(setattr, self, "_failures", transaction.failures))
        return head, unheard

    def _is_written(self, unheard: Sequence[RecordedEvent], at_ms: int, entries: Sequence[Entry]) -> bool:
        before = self._head
        wanted = chained(self._session, entries, at_ms=at_ms, seq=before.seq, previous=before.hash)
        return [one.hash for one in unheard] == [one.hash for one in wanted]

    def _stage(self, transaction: Transaction, head: Head) -> None:
        if self not in transaction.staged:
            transaction.before_commit.append(lambda: self._index(transaction))
            transaction.after_commit.append(lambda: self._adopt(transaction))
        transaction.staged[self] = head

    def _index(self, transaction: Transaction) -> None:
        tally, before = transaction.staged[self].tally, self._head.tally.summary
        line = tally.summary
        moved_by = line.events if self._session in transaction.moved else None
        if (line.name, line.folder) != (before.name, before.folder):
            transaction.execute(
                SQL["update_session"], (self._session, line.name, line.folder, encode(tally), moved_by)
            )
        elif moved_by is None:
            transaction.execute(SQL["note_tally"], (self._session, encode(tally)))
        elif len(transaction.moved) > 1 or not self._stays_newest(transaction, tally):
            transaction.execute(SQL["raise_session"], (self._session, encode(tally), moved_by))

    def _stays_newest(self, transaction: Transaction, tally: SummaryState) -> bool:
        """Note the line where the session is the first of the list as it is, so that the list need not be touched."""
        return transaction.execute(SQL["note_newest"], (self._session, encode(tally))).rowcount == 1

    def _adopt(self, transaction: Transaction) -> None:
        self._head = transaction.staged[self]


class _Foreseen(Value):
    """What events will be recorded as if they come right behind `behind`; and the end of the journal then, if that can be told."""

    behind: Head
    records: list[RecordedEvent]
    head: Head | None


def _foresee(session: SessionId, head: Head, at_ms: int, entries: Sequence[Entry]) -> _Foreseen:
    """Hash and fold before the writer's turn comes, when nobody has to wait for it; it holds if nothing came in between."""
    records = chained(session, entries, at_ms=at_ms, seq=head.seq, previous=head.hash)
    after = head if not records else None if _has_rewind(records) else _advanced(head, records)
    return _Foreseen(behind=head, records=records, head=after)


def next_head(
    transaction: Transaction, session: SessionId, head: Head, records: Sequence[RecordedEvent]
) -> Head:
    """Where the journal ends with these records, which are written already."""
    if not records:
        return head
    if not _has_rewind(records):
        return _advanced(head, records)
    tally = summarize(session, read_history(transaction, session))
    return Head(seq=records[-1].seq, hash=records[-1].hash, tally=tally)


def _has_rewind(records: Sequence[RecordedEvent] | Sequence[Entry]) -> bool:
    return SessionRewound in [type(record.event) for record in records]


def _advanced(head: Head, records: Sequence[RecordedEvent]) -> Head:
    return Head(seq=records[-1].seq, hash=records[-1].hash, tally=advance_summary(head.tally, records))


def check_names(transaction: Transaction, session: SessionId, records: Sequence[RecordedEvent]) -> None:
    """Refuse a name that another session has, or that is its id: once it is gone, who asks for it would get this one."""
    for record in records:
        if not isinstance(record.event, NAMING) or (name := record.event.name) is None:
            continue
        named = transaction.execute(SQL["session_named"], (name,)).fetchone()
        is_id = name != session and transaction.execute(SQL["find_session"], (name,)).fetchone()
        if is_id or (named is not None and named[0] != session):
            raise SessionExists(f"another session is called {name!r}", hint="choose another name")
