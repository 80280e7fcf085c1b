"""Inspection of a journal that may be damaged: finds its problems and returns the events that can be read."""

import sqlite3
from collections.abc import Iterator
from contextlib import suppress

import msgspec

from holdfast.core import SessionId
from holdfast.core.events import GENESIS, RecordedEvent, decode_event, event_hash
from holdfast.store.archive.format import RawEvent
from holdfast.store.contract import Inspection, JournalProblem
from holdfast.store.sqlite.database import SQL
from holdfast.store.sqlite.rows import END, Connection, Segment, lineage, read_summary_state

Row = tuple[int, int, bytes, bytes, bool]


def inspect(connection: Connection, session: SessionId) -> tuple[Inspection, list[RecordedEvent]]:
    """Check every event of a session. Returns the problems and the readable events."""
    problems: list[JournalProblem] = []
    readable: list[RecordedEvent] = []
    previous, place, expected = GENESIS, 0, 1
    segments = lineage(connection, session)
    for segment in segments:
        for seq, at_ms, link, body, is_typed in _rows(connection, segment):
            problems += _gap(expected, seq)
            # After a gap the previous hash is unknown, so only the events after the next one can be checked.
            is_linked = seq > place + 1 or event_hash(previous, segment.session, seq, at_ms, body) == link
            if not (is_typed and is_linked):
                problems.append(JournalProblem(seq=seq, what="changed"))
            try:
                event = decode_event(body)
            except msgspec.MsgspecError:
                problems.append(JournalProblem(seq=seq, what="unreadable"))
            else:
                readable.append(
                    RecordedEvent(
                        session=segment.session,
                        seq=seq,
                        at_ms=at_ms,
                        event=event,
                        hash=link,
                        previous=previous,
                    )
                )
            previous, place, expected = link, seq, seq + 1
        if segment.upto < END:
            problems += _gap(expected, segment.upto + 1)
            expected = max(expected, segment.upto + 1)
    # A session has at least its first event, whatever the session list says.
    problems += _gap(expected, max(read_summary_state(connection, session).summary.events, 1) + 1)
    with suppress(sqlite3.DatabaseError):  # unreadable rows are already reported as missing
        added = connection.execute(SQL["added_events"], (session, segments[-1].after)).fetchall()
        problems += [JournalProblem(seq=seq, what="added") for (seq,) in added]
    found = Inspection(
        session=session, events=len(readable), problems=tuple(problems), last_hash=previous.hex()
    )
    return found, readable


def _gap(expected: int, found: int) -> list[JournalProblem]:
    return [JournalProblem(seq=expected, what="missing", count=found - expected)] if found > expected else []


def read_raw_events(connection: Connection, session: SessionId) -> Iterator[RawEvent]:
    """Yield every existing event with its exact bytes."""
    for segment in lineage(connection, session):
        for seq, at_ms, link, body, _ in _rows(connection, segment):
            yield RawEvent(session=segment.session, seq=seq, at_ms=at_ms, hash=link, body=body)


def _rows(connection: Connection, segment: Segment) -> Iterator[Row]:
    after = segment.after
    try:
        for row in connection.execute(SQL["inspect_events"], (segment.session, after, segment.upto)):
            yield row
            after = row[0]
    except sqlite3.DatabaseError:
        yield from _rows_one_by_one(connection, segment, after)


def _rows_one_by_one(connection: Connection, segment: Segment, after: int) -> Iterator[Row]:
    # The events of an unreadable page are lost; those on other pages can be read by their numbers.
    is_own = segment.upto == END
    upto = read_summary_state(connection, segment.session).summary.events if is_own else segment.upto
    for seq in range(after + 1, upto + 1):
        try:
            row = connection.execute(SQL["inspect_events"], (segment.session, seq - 1, seq)).fetchone()
        except sqlite3.DatabaseError:
            continue
        if row is not None:
            yield row
