"""Inspection of a journal that may be damaged: finds its problems and returns the events that can be read."""

import sqlite3
from collections.abc import Iterator
from contextlib import suppress

from holdfast.core import SessionId
from holdfast.core.events import RecordedEvent
from holdfast.store.archive.format import RawEvent
from holdfast.store.contract import Inspection
from holdfast.store.inspection import InspectedSegment, Row, inspect_rows
from holdfast.store.sqlite.database import SQL
from holdfast.store.sqlite.rows import END, Connection, Segment, lineage, read_summary_state


def inspect(connection: Connection, session: SessionId) -> tuple[Inspection, list[RecordedEvent]]:
    """Check every event of a session. Returns the problems and the readable events."""
    segments = lineage(connection, session)
    claimed = read_summary_state(connection, session).summary.events
    added: list[int] = []
    with suppress(sqlite3.DatabaseError):  # unreadable rows are reported as missing
        found = connection.execute(SQL["added_events"], (session, segments[-1].after)).fetchall()
        added = [seq for (seq,) in found]
    inspected = (
        InspectedSegment(
            session=one.session,
            upto=one.upto if one.upto < END else None,
            rows=_rows(connection, one),
        )
        for one in segments
    )
    return inspect_rows(session, inspected, claimed=claimed, added=added)


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
