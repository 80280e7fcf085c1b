"""Remains: what can still be read of a damaged database, put in order: events, contents, tombstones, and what the list noted."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from holdfast.core import SessionId, check_session_id, digest_bytes
from holdfast.core.errors import InvalidId
from holdfast.core.events import event_hash
from holdfast.store.recovery.sqlite_pages import Column, Row
from holdfast.store.sqlite.rows import decode_tally
from holdfast.store.summary import SummaryState

HIGHEST_ROW = 2**53
"""A number above it is damage: whoever writes a thousand events a second gets there in 285,000 years."""


@dataclass(frozen=True, slots=True)
class Event:
    """A row of the journal as it was found."""

    row: int
    session: str
    seq: int
    at_ms: int
    hash: bytes
    body: bytes


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A tombstone as it was found; its columns are those of the table."""

    kept_seq: int
    columns: tuple[Column | str, ...]


@dataclass(slots=True)
class RecoveredRows:
    """What was found. Of an event there may be several versions, the later ones last."""

    events: dict[tuple[str, int], list[Event]] = field(default_factory=dict)
    blobs: dict[bytes, tuple[Column, ...]] = field(default_factory=dict)
    graves: dict[str, Tombstone] = field(default_factory=dict)
    lines: dict[SessionId, SummaryState] = field(default_factory=dict)

    def journal(self) -> list[Event]:
        """Each event once, in the order in which they were written."""
        chosen = (self._best(versions) for versions in self.events.values())
        return sorted(chosen, key=lambda one: (one.row, one.session, one.seq))

    def _best(self, versions: list[Event]) -> Event:
        # Of several versions the one that its predecessor vouches for, else the last written.
        for event in reversed(versions):
            before = self.events.get((event.session, event.seq - 1), [])
            links = (
                event_hash(one.hash, event.session, event.seq, event.at_ms, event.body) for one in before
            )
            if event.hash in links:
                return event
        return versions[-1]


def classify_rows(rows: Iterable[Row]) -> RecoveredRows:
    """Tell from its shape what each row was, and leave out what was deleted."""
    remains = RecoveredRows()
    stale: list[Event] = []
    stale_lines: list[SummaryState] = []
    for row in rows:
        match row.columns:
            case (None, bytes(session), int(seq), int(at_ms), bytes(link), bytes(body)) if len(link) == 32:
                if _id(session) is not None and 0 < seq < HIGHEST_ROW and 0 < row.number < HIGHEST_ROW:
                    event = Event(row.number, session.decode(), seq, at_ms, link, body)
                    remains.events.setdefault((event.session, seq), []).append(event)
                    if not row.is_current:
                        stale.append(event)
            case (bytes(digest), int(), bytes(content), int(), int()) if (
                digest_bytes(content) == digest.hex()
            ):
                remains.blobs[digest] = row.columns
            case (bytes(digest), int(), None, int(), int()) if len(digest) == 32:
                remains.blobs[digest] = row.columns
            case (bytes(session), _, int(), bytes(), int(), bytes(), int(kept), _, _):
                if (id := _id(session)) is not None:
                    remains.graves[id] = Tombstone(kept, tuple(map(_text, range(9), row.columns)))
            case (bytes(session), _, bytes(), int(), _, _, bytes(tally)):
                line = _line(session, tally)
                if line is not None and row.is_current:
                    remains.lines[line.summary.id] = line
                elif line is not None:
                    stale_lines.append(line)
            case _:
                continue
    _forget_deleted(remains, stale)
    for line in stale_lines:
        if line.summary.id not in remains.graves:
            remains.lines.setdefault(line.summary.id, line)
    return remains


def _forget_deleted(remains: RecoveredRows, stale: Iterable[Event]) -> None:
    """Older versions of pages still hold what was deleted since. An id may be in use again: then its pages are current."""
    for event in stale:
        grave = remains.graves.get(event.session)
        if grave is not None and event.seq > grave.kept_seq:
            versions = remains.events[event.session, event.seq]
            versions.remove(event)
            if not versions:
                del remains.events[event.session, event.seq]


def _line(session: bytes, tally: bytes) -> SummaryState | None:
    id = _id(session)
    try:
        return decode_tally(tally, id) if id is not None else None
    except msgspec.MsgspecError:
        return None


def _id(text: bytes) -> SessionId | None:
    try:
        return check_session_id(text.decode())
    except (InvalidId, UnicodeDecodeError):
        return None


def _text(place: int, column: Column) -> Column | str:
    is_text = place in (0, 1, 3, 7) and isinstance(column, bytes)
    return column.decode(errors="replace") if is_text and isinstance(column, bytes) else column
