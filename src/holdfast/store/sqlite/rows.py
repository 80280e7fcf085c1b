"""Rows: how events are read from the database and put into it. Blocking; runs in the store's own threads.

Records: how an event becomes what is kept of it, the same in every store.
"""

import gc
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Protocol

import msgspec

from holdfast.core import SessionId, Value
from holdfast.core.errors import InvalidInput, JournalDamaged, SessionNotFound
from holdfast.core.events import (
    GENESIS,
    AnyEvent,
    Parent,
    RecordedEvent,
    decode_event,
    decode_events,
    encode_event,
    event_hash,
    event_hashes,
)
from holdfast.store.sqlite.database import SQL
from holdfast.store.sqlite.names import named
from holdfast.store.sqlite.transaction import Transaction
from holdfast.store.summary import SummaryState

Redact = Callable[[bytes], bytes]
"""Takes the known secrets out of the bytes of an event."""


class Entry(Value):
    """An event as it will be recorded, with its bytes, not yet in its place."""

    event: AnyEvent
    body: bytes


def encode_entry(event: AnyEvent, redact: Redact) -> Entry:
    """Fix an event: what the caller still holds and may change is not what is recorded."""
    try:
        body = redact(encode_event(named(event)))
        return Entry(event=decode_event(body), body=body)
    except RecursionError:
        raise InvalidInput(f"a {type(event).__name__} is nested too deeply to be recorded") from None
    except msgspec.MsgspecError as problem:
        # Fail closed: with the secret it may not be written, and without it, it is no event.
        raise InvalidInput(
            f"a known secret is a word that a {type(event).__name__} is made of, so that it cannot be recorded",
            hint="change the secret for one that nobody could guess",
        ) from problem


def chained(
    session: SessionId, entries: Sequence[Entry], *, at_ms: int, seq: int, previous: bytes
) -> list[RecordedEvent]:
    """Entries in their places behind the event `seq` with the hash `previous`."""
    records: list[RecordedEvent] = []
    for place, entry in enumerate(entries, start=seq + 1):
        link = event_hash(previous, session, place, at_ms, entry.body)
        records.append(
            RecordedEvent(
                session=session, seq=place, at_ms=at_ms, event=entry.event, hash=link, previous=previous
            )
        )
        previous = link
    return records


LAST = 2**62
AT_A_TIME = 64
"""So many events are read and checked together; what they hold stays in the nearer caches."""
_TALLY: msgspec.json.Decoder[SummaryState] = msgspec.json.Decoder(SummaryState)


class Connection(Protocol):
    """What both a connection and a transaction offer."""

    def execute(self, sql: str, parameters: tuple[object, ...] = ..., /) -> sqlite3.Cursor:
        """Carry out one statement."""
        ...


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of a history that one session wrote: after `after`, up to and with `upto`."""

    session: SessionId
    after: int
    upto: int


class Head(Value):
    """Where a journal ends, as its writer knows it."""

    seq: int
    hash: bytes
    tally: SummaryState


def lineage(connection: Connection, session: SessionId, *, upto: int = LAST) -> list[Segment]:
    """The stretches that a session's history consists of, oldest first: its ancestors' parts, then its own."""
    segments: list[Segment] = []
    current: str | None = session
    seen = set[str]()
    while current is not None and current not in seen:  # damaged lines may lead in a circle
        seen.add(current)
        row = connection.execute(SQL["parent_of"], (current,)).fetchone()
        if row is None and not segments:
            raise SessionNotFound(f"there is no session {current!r}")
        parent, parent_seq = row or (None, None)  # an ancestor that was lost is a stretch without events
        after = parent_seq or 0
        segments.append(Segment(session=SessionId(current), after=after, upto=upto))
        current, upto = parent, min(upto, after)
    return segments[::-1]


def read_history(
    connection: Connection, session: SessionId, *, after: int = 0, upto: int = LAST
) -> list[RecordedEvent]:
    """A session's events, its ancestors' part included, each checked against the hash it carries."""
    with _uncollected():
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
        while some := rows.fetchmany(AT_A_TIME):
            history += _recorded(session, segment.session, place, previous, some)
            place, previous = history[-1].seq, history[-1].hash
        if segment.upto < LAST and place < segment.upto:
            raise damaged(session, place + 1)
    return history


def _recorded(
    session: SessionId, writer: SessionId, after: int, previous: bytes, rows: Sequence[Any]
) -> list[RecordedEvent]:
    """Rows as the events they have to be, each checked. All at once, for one after the other takes a quarter longer."""
    seqs, times, links, bodies = zip(*rows, strict=True)
    places, before = tuple(range(after + 1, after + 1 + len(rows))), (previous, *links[:-1])
    is_typed = set(map(type, times)) == {int}  # the hash is over whole milliseconds and would hide the rest
    try:
        if seqs == places and is_typed and event_hashes(before, writer, places, times, bodies) == links:
            return list(
                map(RecordedEvent, repeat(writer), places, times, decode_events(bodies), links, before)
            )
        problem = None
    except (msgspec.MsgspecError, TypeError) as error:  # the types of a row are not sure either
        problem = error
    if len(rows) == 1:
        raise damaged(session, after + 1) from problem
    return [  # which one is it?
        one
        for place, link, row in zip(places, before, rows, strict=True)
        for one in _recorded(session, writer, place - 1, link, [row])
    ]


def read_tally(connection: Connection, session: SessionId) -> SummaryState:
    """A session's line. Raises SessionNotFound; msgspec.MsgspecError where the list is damaged."""
    row = connection.execute(SQL["find_session"], (session,)).fetchone()
    if row is None:
        require_listed(connection, session)
        raise _not_found(session)
    return decode_tally(row[0], session)


def require_session(connection: Connection, session: SessionId) -> None:
    """Raises SessionNotFound where the list has no such session."""
    if connection.execute(SQL["find_session"], (session,)).fetchone() is None:
        raise _not_found(session)


def require_listed(connection: Connection, session: str) -> None:
    """Raises msgspec.MsgspecError where the list has lost a session that there is."""
    if connection.execute(SQL["has_events"], (session,)).fetchone() is not None:
        raise msgspec.DecodeError("the list of sessions has lost one")


def decode_tally(body: object, session: str) -> SummaryState:
    """The line of a session as it is stored; raises msgspec.MsgspecError on anything else."""
    if not isinstance(body, bytes | str):
        raise msgspec.DecodeError("a line of the list is JSON")
    try:
        tally = _TALLY.decode(body)
    except UnicodeDecodeError as problem:
        raise msgspec.DecodeError("a line of the list is UTF-8") from problem
    if tally.summary.id != session:
        raise msgspec.DecodeError("a line of the list is about another session")
    return tally


def columns_of(parent: Parent | None) -> tuple[SessionId | None, int | None]:
    """A parent as the tables have it."""
    return (parent.session, parent.seq) if parent else (None, None)


def append_records(
    transaction: Transaction, records: Sequence[RecordedEvent], entries: Sequence[Entry]
) -> None:
    """Add events to the truth."""
    transaction.executemany(
        SQL["append_event"],
        [
            (record.session, record.seq, record.at_ms, record.hash, entry.body)
            for record, entry in zip(records, entries, strict=True)
        ],
    )


def _not_found(session: SessionId) -> SessionNotFound:
    return SessionNotFound(f"there is no session {session!r}", hint="`holdfast sessions` lists them")


def damaged(session: SessionId, seq: int) -> JournalDamaged:
    """The error for a journal that is not what was written."""
    return JournalDamaged(
        f"event {seq} of session {session!r} is missing or was changed",
        hint=f"`holdfast verify {session}` says what is wrong, `holdfast export {session}` saves what can be read",
    )


@contextmanager
def _uncollected() -> Iterator[None]:
    # Thousands of new values that all stay alive set the cycle collector off again and again for nothing; that would
    # be half the time of a load.
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
