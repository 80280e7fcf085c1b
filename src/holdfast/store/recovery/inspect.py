"""Inspection: read a journal that may be damaged, say what is wrong with it, and keep what can be read."""

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from typing import Literal

import msgspec

from holdfast.core import SessionId, Value
from holdfast.core.events import GENESIS, RecordedEvent, decode_event, event_hash
from holdfast.store.sqlite.database import SQL
from holdfast.store.sqlite.rows import LAST, Connection, Segment, lineage, read_tally

Row = tuple[int, int, bytes, bytes, bool]


class Line(Value):
    """One event as it was found: in its place, with its exact bytes."""

    session: SessionId
    seq: int
    at_ms: int
    hash: bytes
    body: bytes


class Problem(Value):
    """An event that is not as it was written, or never was; or `count` of them in a row, where they are missing."""

    seq: int
    what: Literal["missing", "changed", "unreadable", "added"]
    count: int = 1


class Inspection(Value):
    """What was found. A journal without problems is exactly what was written, in its order."""

    session: SessionId
    events: int
    problems: tuple[Problem, ...] = ()
    last_hash: str = ""

    @property
    def is_sound(self) -> bool:
        """Whether everything is as it was written."""
        return not self.problems


def inspect(connection: Connection, session: SessionId) -> tuple[Inspection, list[RecordedEvent]]:
    """Check every event of a session, and hand out those that can be read."""
    problems: list[Problem] = []
    readable: list[RecordedEvent] = []
    previous, place, expected = GENESIS, 0, 1
    segments = lineage(connection, session)
    for segment in segments:
        for seq, at_ms, link, body, is_typed in _rows(connection, segment):
            problems += _gap(expected, seq)
            # After a gap the link before is unknown, so that only what follows the next event can be held against it.
            is_linked = seq > place + 1 or event_hash(previous, segment.session, seq, at_ms, body) == link
            if not (is_typed and is_linked):
                problems.append(Problem(seq=seq, what="changed"))
            try:
                event = decode_event(body)
            except msgspec.MsgspecError:
                problems.append(Problem(seq=seq, what="unreadable"))
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
        if segment.upto < LAST:
            problems += _gap(expected, segment.upto + 1)
            expected = max(expected, segment.upto + 1)
    # A session has at least the event that it began with, whatever its line says.
    problems += _gap(expected, max(read_tally(connection, session).summary.events, 1) + 1)
    with suppress(sqlite3.DatabaseError):  # what cannot be looked at is missing above
        added = connection.execute(SQL["added_events"], (session, segments[-1].after)).fetchall()
        problems += [Problem(seq=seq, what="added") for (seq,) in added]
    found = Inspection(
        session=session, events=len(readable), problems=tuple(problems), last_hash=previous.hex()
    )
    return found, readable


def _gap(expected: int, found: int) -> list[Problem]:
    return [Problem(seq=expected, what="missing", count=found - expected)] if found > expected else []


def read_lines(connection: Connection, session: SessionId) -> Iterator[Line]:
    """The bytes of every event that is there, as they were written."""
    for segment in lineage(connection, session):
        for seq, at_ms, link, body, _ in _rows(connection, segment):
            yield Line(session=segment.session, seq=seq, at_ms=at_ms, hash=link, body=body)


def _rows(connection: Connection, segment: Segment) -> Iterator[Row]:
    after = segment.after
    try:
        for row in connection.execute(SQL["inspect_events"], (segment.session, after, segment.upto)):
            yield row
            after = row[0]
    except sqlite3.DatabaseError:
        yield from _rows_one_by_one(connection, segment, after)


def _rows_one_by_one(connection: Connection, segment: Segment, after: int) -> Iterator[Row]:
    # A page that cannot be read takes its events with it; those on other pages are reached by their own number.
    is_own = segment.upto == LAST
    upto = read_tally(connection, segment.session).summary.events if is_own else segment.upto
    for seq in range(after + 1, upto + 1):
        try:
            row = connection.execute(SQL["inspect_events"], (segment.session, seq - 1, seq)).fetchone()
        except sqlite3.DatabaseError:
            continue
        if row is not None:
            yield row
