"""The journal of a session in the SQLite store: appending events and writing them as rows."""

import asyncio
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any

from holdfast.core import Clock, SessionId, Value, encode
from holdfast.core.errors import InvalidInput, SessionExists
from holdfast.core.events import Event, RecordedEvent
from holdfast.store.blobs.store import Blobs, NewBlob
from holdfast.store.contract import Follower, Redact
from holdfast.store.entries import Entry, chain_entries, encode_entry
from holdfast.store.event_log import EventLog
from holdfast.store.history import Head, advance_head, has_rewind
from holdfast.store.names import NAMING_EVENTS, names_in
from holdfast.store.pending_write import PendingWrite
from holdfast.store.sqlite.database import SQL
from holdfast.store.sqlite.leases import Leases
from holdfast.store.sqlite.rows import append_records, read_history
from holdfast.store.sqlite.transaction import Transaction
from holdfast.store.sqlite.writer import Writer
from holdfast.store.summary import SummaryState, is_activity, summarize

MAX_INLINE_BYTES = 64 * 1024
"""Up to this size, an append can be committed on the event loop."""


class SqliteJournal:
    """The writer of a session. The store creates it after it has taken the lease."""

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
        self._log = EventLog(history)
        self._head = head  # set only while holding the write lock, like `_failures`
        self._failures = 0
        self._writer = writer
        self._blobs = blobs
        self._clock = clock
        self._redact = redact
        self._latest: asyncio.Future[None] | None = None
        self._deferred: list[Entry] = []
        """Events that are recorded with the next append."""
        self._deferred_problem: BaseException | None = None
        """Why deferred events could not be recorded; the next append raises it."""
        self._released: asyncio.Future[None] | None = None

    @property
    def session(self) -> SessionId:
        return self._session

    @property
    def fence(self) -> int:
        return self._fence

    @property
    def recorded(self) -> Sequence[RecordedEvent]:
        return self._log.recorded

    def follow(self, follower: Follower) -> None:
        self._log.follow(follower)

    def append(self, *events: Event, blobs: Sequence[bytes] = ()) -> Coroutine[Any, Any, None]:
        # Encoded now, so that later changes by the caller do not alter the record.
        try:
            entries = [encode_entry(event, self._redact) for event in events]
        except InvalidInput as refusal:
            return PendingWrite.failed(refusal)
        if self._deferred and (blobs or names_in(events)):
            self._write_deferred()  # an append that can be refused carries no deferred events
        if self._deferred_problem is not None:
            problem, self._deferred_problem = self._deferred_problem, None
            return PendingWrite.failed(problem)
        if not (entries or blobs or self._deferred):
            return PendingWrite.done()
        return PendingWrite(self._write(entries, blobs))

    def append_deferred(self, event: Event) -> None:
        if not self._deferred:
            self._writer.deferral_timer.schedule(self._write_deferred)
        self._deferred.append(encode_entry(event, self._redact))

    def _write_deferred(self) -> None:
        if self._deferred:
            self._write([]).add_done_callback(self._note_failure)

    def _note_failure(self, written: "asyncio.Future[None]") -> None:
        if not written.cancelled():
            self._deferred_problem = self._deferred_problem or written.exception()

    def _write(self, new: Sequence[Entry], blobs: Sequence[bytes] = ()) -> "asyncio.Future[None]":
        """Submit deferred and new events; all are recorded or none."""
        entries, self._deferred = [*self._deferred, *new], []
        at_ms = self._clock.now_ms()
        prepared = None
        if self._latest is None or self._latest.done():  # otherwise the end of the journal is not known yet
            prepared = _prepare(self._session, self._head, at_ms, entries)
        records: list[RecordedEvent] = []

        def work(transaction: Transaction) -> None:
            # Hashed here, in the writer's thread: a blob may have a hundred megabytes.
            drafts = [self._blobs.draft(content) for content in blobs]
            records[:] = self._record(transaction, at_ms, entries, drafts, prepared)

        is_small = not blobs and sum([len(entry.body) for entry in entries]) < MAX_INLINE_BYTES
        is_rewind = prepared.head is None if prepared is not None else has_rewind(entries)
        self._latest = self._writer.submit(
            work, on_committed=lambda _: self._log.extend(records), may_run_inline=is_small and not is_rewind
        )
        return self._latest

    async def release(self) -> None:
        if self._released is None:
            self._write_deferred()
            self._released = self._writer.submit(
                lambda transaction: self._leases.release(transaction, self._session, self._fence),
                may_run_inline=True,
            )
        await asyncio.shield(self._released)

    def _record(
        self,
        transaction: Transaction,
        at_ms: int,
        entries: Sequence[Entry],
        drafts: Sequence[NewBlob],
        prepared: "_Prepared | None",
    ) -> list[RecordedEvent]:
        head: Head | None = transaction.staged.get(self)
        unheard: list[RecordedEvent] = []
        if head is None:
            self._leases.check(transaction, self._session, self._fence)
            head, unheard = self._current(transaction)
        if unheard and self._is_written(unheard, at_ms, entries):
            records, unheard = unheard, []
        else:
            if prepared is None or head is not prepared.behind:
                prepared = _prepare(self._session, head, at_ms, entries)
            records = prepared.records
            check_names(transaction, self._session, records)
            for draft in drafts:
                self._blobs.write(transaction, draft)
            append_records(transaction, records, entries)
            head = prepared.head or next_head(transaction, self._session, head, records)
        self._stage(transaction, head)
        if any(map(is_activity, records)):
            transaction.moved.add(self._session)
        return [*unheard, *records]

    def _current(self, transaction: Transaction) -> tuple[Head, list[RecordedEvent]]:
        """Return where the journal ends, and events that are on disk although their commit seemed to fail."""
        if transaction.failures == self._failures:
            return self._head, []
        unheard = read_history(transaction, self._session, after=self._head.seq)
        head = next_head(transaction, self._session, self._head, unheard)
        transaction.after_commit.append(partial(setattr, self, "_failures", transaction.failures))
        return head, unheard

    def _is_written(self, unheard: Sequence[RecordedEvent], at_ms: int, entries: Sequence[Entry]) -> bool:
        before = self._head
        wanted = chain_entries(self._session, entries, at_ms=at_ms, seq=before.seq, previous=before.hash)
        return [one.hash for one in unheard] == [one.hash for one in wanted]

    def _stage(self, transaction: Transaction, head: Head) -> None:
        if self not in transaction.staged:
            transaction.before_commit.append(lambda: self._index(transaction))
            transaction.after_commit.append(lambda: self._adopt(transaction))
        transaction.staged[self] = head

    def _index(self, transaction: Transaction) -> None:
        state, before = transaction.staged[self].state, self._head.state.summary
        line = state.summary
        moved_by = line.events if self._session in transaction.moved else None
        if (line.name, line.folder) != (before.name, before.folder):
            transaction.execute(
                SQL["update_session"], (self._session, line.name, line.folder, encode(state), moved_by)
            )
        elif moved_by is None:
            transaction.execute(SQL["update_summary"], (self._session, encode(state)))
        elif len(transaction.moved) > 1 or not self._stays_newest(transaction, state):
            transaction.execute(SQL["move_to_top"], (self._session, encode(state), moved_by))

    def _stays_newest(self, transaction: Transaction, state: SummaryState) -> bool:
        """Update the row of a session that is already the newest, without touching the indexes."""
        return transaction.execute(SQL["update_newest_summary"], (self._session, encode(state))).rowcount == 1

    def _adopt(self, transaction: Transaction) -> None:
        self._head = transaction.staged[self]


class _Prepared(Value):
    """The records of new events if they follow `behind`, and the new end of the journal, unless it must be recomputed."""

    behind: Head
    records: list[RecordedEvent]
    head: Head | None


def _prepare(session: SessionId, head: Head, at_ms: int, entries: Sequence[Entry]) -> _Prepared:
    """Hash and summarize events before the writer runs, off the critical path. Valid if nothing is written in between."""
    records = chain_entries(session, entries, at_ms=at_ms, seq=head.seq, previous=head.hash)
    after = head if not records else None if has_rewind(records) else advance_head(head, records)
    return _Prepared(behind=head, records=records, head=after)


def next_head(
    transaction: Transaction, session: SessionId, head: Head, records: Sequence[RecordedEvent]
) -> Head:
    """Return where the journal ends after these records, which are already written."""
    if not records:
        return head
    if not has_rewind(records):
        return advance_head(head, records)
    state = summarize(session, read_history(transaction, session))
    return Head(seq=records[-1].seq, hash=records[-1].hash, state=state)


def check_names(transaction: Transaction, session: SessionId, records: Sequence[RecordedEvent]) -> None:
    """Refuse a name that is the name or id of another session. If that session were deleted, the name would find this one."""
    for record in records:
        if not isinstance(record.event, NAMING_EVENTS) or (name := record.event.name) is None:
            continue
        named = transaction.execute(SQL["session_named"], (name,)).fetchone()
        is_id = name != session and transaction.execute(SQL["find_session"], (name,)).fetchone()
        if is_id or (named is not None and named[0] != session):
            raise SessionExists(f"another session has the name {name!r}", hint="choose another name")
