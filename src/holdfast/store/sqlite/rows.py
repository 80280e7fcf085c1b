"""Rows of events and summaries: reading and writing them. Blocking; runs on the store's own threads."""

import gc
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Protocol

import msgspec

from holdfast.core import SessionId, Value
from holdfast.core.errors import JournalDamaged, SessionNotFound
from holdfast.core.events import (
    GENESIS,
    Parent,
    RecordedEvent,
    decode_events,
    event_hashes,
)
from holdfast.store.entries import Entry
from holdfast.store.sqlite.database import SQL
from holdfast.store.sqlite.transaction import Transaction
from holdfast.store.summary import SummaryState

END = 2**62
BATCH_SIZE = 64
"""How many events are read and checked together, so that their data stays in the CPU caches."""
_SUMMARY_DECODER: msgspec.json.Decoder[SummaryState] = msgspec.json.Decoder(SummaryState)


class Connection(Protocol):
    """What a connection and a transaction have in common."""

    def execute(self, sql: str, parameters: tuple[object, ...] = ..., /) -> sqlite3.Cursor:
        """Execute one statement."""
        ...


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a history that one session wrote: after `after`, up to and including `upto`."""

    session: SessionId
    after: int
    upto: int


class Head(Value):
    """The end of a journal, as its writer knows it."""

    seq: int
    hash: bytes
    state: SummaryState


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
    with _gc_paused():
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
            history += _recorded(session, segment.session, place, previous, some)
            place, previous = history[-1].seq, history[-1].hash
        if segment.upto < END and place < segment.upto:
            raise damaged(session, place + 1)
    return history


def _recorded(
    session: SessionId, writer: SessionId, after: int, previous: bytes, rows: Sequence[Any]
) -> list[RecordedEvent]:
    """Decode and check rows. All at once, because one by one takes a quarter longer."""
    seqs, times, links, bodies = zip(*rows, strict=True)
    places, before = tuple(range(after + 1, after + 1 + len(rows))), (previous, *links[:-1])
    is_typed = set(map(type, times)) == {int}  # the hash covers whole milliseconds and would hide a fraction
    try:
        if seqs == places and is_typed and event_hashes(before, writer, places, times, bodies) == links:
            return list(
                map(RecordedEvent, repeat(writer), places, times, decode_events(bodies), links, before)
            )
        problem = None
    except (msgspec.MsgspecError, TypeError) as error:  # columns of a damaged row can have any type
        problem = error
    if len(rows) == 1:
        raise damaged(session, after + 1) from problem
    return [  # find the damaged one
        one
        for place, link, row in zip(places, before, rows, strict=True)
        for one in _recorded(session, writer, place - 1, link, [row])
    ]


def read_summary_state(connection: Connection, session: SessionId) -> SummaryState:
    """Read a session's summary. Raises SessionNotFound, or msgspec.MsgspecError if the index is damaged."""
    row = connection.execute(SQL["find_session"], (session,)).fetchone()
    if row is None:
        require_listed(connection, session)
        raise _not_found(session)
    return decode_summary_state(row[0], session)


def require_session(connection: Connection, session: SessionId) -> None:
    """Raise SessionNotFound if the session is not in the index."""
    if connection.execute(SQL["find_session"], (session,)).fetchone() is None:
        raise _not_found(session)


def require_listed(connection: Connection, session: str) -> None:
    """Raise msgspec.MsgspecError if the session has events but is not in the index."""
    if connection.execute(SQL["has_events"], (session,)).fetchone() is not None:
        raise msgspec.DecodeError("the session list has lost a session")


def decode_summary_state(body: object, session: str) -> SummaryState:
    """Decode a stored summary. Raises msgspec.MsgspecError."""
    if not isinstance(body, bytes | str):
        raise msgspec.DecodeError("a summary must be JSON")
    try:
        state = _SUMMARY_DECODER.decode(body)
    except UnicodeDecodeError as problem:
        raise msgspec.DecodeError("a summary must be UTF-8") from problem
    if state.summary.id != session:
        raise msgspec.DecodeError("a summary belongs to another session")
    return state


def parent_columns(parent: Parent | None) -> tuple[SessionId | None, int | None]:
    """The columns of a parent."""
    return (parent.session, parent.seq) if parent else (None, None)


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


def _not_found(session: SessionId) -> SessionNotFound:
    return SessionNotFound(f"there is no session {session!r}", hint="`holdfast sessions` lists all sessions")


def damaged(session: SessionId, seq: int) -> JournalDamaged:
    """Create the error for a damaged journal."""
    return JournalDamaged(
        f"event {seq} of session {session!r} is missing or was changed",
        hint=f"`holdfast verify {session}` shows the damage, `holdfast export {session}` saves what can be read",
    )


@contextmanager
def _gc_paused() -> Iterator[None]:
    # Thousands of new objects that stay alive trigger the garbage collector again and again, which would take half
    # the time of a load.
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _hash_before(connection: Connection, session: SessionId, after: int) -> bytes:
    if after <= 0:
        return GENESIS
    for segment in lineage(connection, session):
        if segment.after < after <= segment.upto:
            row = connection.execute(SQL["event_hash"], (segment.session, after)).fetchone()
            if row is not None:
                return bytes(row[0])
    return GENESIS
