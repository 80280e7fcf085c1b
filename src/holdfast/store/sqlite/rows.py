"""Rows of events and summaries: reading and writing them. Blocking; runs on the store's own threads."""

import sqlite3
from collections.abc import Sequence
from typing import Protocol

import msgspec

from holdfast.core import SessionId, Value
from holdfast.core.errors import SessionNotFound
from holdfast.core.events import (
    GENESIS,
    RecordedEvent,
)
from holdfast.store.entries import Entry
from holdfast.store.history import damaged, decode_rows, decode_summary_state, gc_paused, not_found
from holdfast.store.sqlite.database import SQL
from holdfast.store.sqlite.transaction import Transaction
from holdfast.store.summary import SummaryState

END = 2**62
BATCH_SIZE = 64
"""How many events are read and checked together, so that their data stays in the CPU caches."""


class Connection(Protocol):
    """What a connection and a transaction have in common."""

    def execute(self, sql: str, parameters: tuple[object, ...] = ..., /) -> sqlite3.Cursor:
        """Execute one statement."""
        ...


class Segment(Value):
    """A part of a history that one session wrote: after `after`, up to and including `upto`."""

    session: SessionId
    after: int
    upto: int


def lineage(connection: Connection, session: SessionId, *, upto: int = END) -> list[Segment]:
    """List the segments of a session's history, oldest first: those of its ancestors, then its own."""
    segments: list[Segment] = []
    current: str | None = session
    seen = set[str]()
    while current is not None and current not in seen:  # damaged rows can form a cycle
        seen.add(current)
        row = connection.execute(SQL["parent_of"], (current,)).fetchone()
        if row is None and not segments:
            raise SessionNotFound(f"there is no session {current!r}")
        parent, parent_seq = row or (None, None)  # a lost ancestor is a segment without events
        after = parent_seq or 0
        segments.append(Segment(session=SessionId(current), after=after, upto=upto))
        current, upto = parent, min(upto, after)
    return segments[::-1]


def read_history(
    connection: Connection, session: SessionId, *, after: int = 0, upto: int = END
) -> list[RecordedEvent]:
    """Read a session's events, including those of its ancestors, and check each against its hash."""
    with gc_paused():
        return _read_history(connection, session, after, upto)


def _read_history(connection: Connection, session: SessionId, after: int, upto: int) -> list[RecordedEvent]:
    history: list[RecordedEvent] = []
    previous = _hash_before(connection, session, after)
    place = after
    for segment in lineage(connection, session, upto=upto):
        if segment.upto <= after:
            continue
        span = (segment.session, max(segment.after, after), segment.upto)
        rows = connection.execute(SQL["read_events"], span)
        while some := rows.fetchmany(BATCH_SIZE):
            history += decode_rows(session, segment.session, place, previous, some)
            place, previous = history[-1].seq, history[-1].hash
        if segment.upto < END and place < segment.upto:
            raise damaged(session, place + 1)
    return history


def read_summary_state(connection: Connection, session: SessionId) -> SummaryState:
    """Read a session's summary. Raises SessionNotFound, or msgspec.MsgspecError if the index is damaged."""
    row = connection.execute(SQL["find_session"], (session,)).fetchone()
    if row is None:
        require_listed(connection, session)
        raise not_found(session)
    return decode_summary_state(row[0], session)


def require_session(connection: Connection, session: SessionId) -> None:
    """Raise SessionNotFound if the session is not in the index."""
    if connection.execute(SQL["find_session"], (session,)).fetchone() is None:
        raise not_found(session)


def require_listed(connection: Connection, session: str) -> None:
    """Raise msgspec.MsgspecError if the session has events but is not in the index."""
    if connection.execute(SQL["has_events"], (session,)).fetchone() is not None:
        raise msgspec.DecodeError("the session list has lost a session")


def append_records(
    transaction: Transaction, records: Sequence[RecordedEvent], entries: Sequence[Entry]
) -> None:
    """Insert events."""
    transaction.executemany(
        SQL["append_event"],
        [
            (record.session, record.seq, record.at_ms, record.hash, entry.body)
            for record, entry in zip(records, entries, strict=True)
        ],
    )


def _hash_before(connection: Connection, session: SessionId, after: int) -> bytes:
    if after <= 0:
        return GENESIS
    for segment in lineage(connection, session):
        if segment.after < after <= segment.upto:
            row = connection.execute(SQL["event_hash"], (segment.session, after)).fetchone()
            if row is not None:
                return bytes(row[0])
    return GENESIS
