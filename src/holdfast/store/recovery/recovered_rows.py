"""The rows recovered from a damaged database, classified: events, blobs, tombstones and session summaries."""

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from holdfast.core import SessionId, check_session_id, digest_bytes
from holdfast.core.errors import InvalidId
from holdfast.core.events import event_hash
from holdfast.store.history import decode_summary_state
from holdfast.store.recovery.sqlite_pages import Column, PageRow
from holdfast.store.summary import SummaryState

MAX_ROW_NUMBER = 2**53
"""A larger row number is damage: at a thousand events per second it would take 285,000 years to reach."""


@dataclass(frozen=True, slots=True)
class RecoveredEvent:
    """A recovered row of the journal."""

    row: int
    session: str
    seq: int
    at_ms: int
    hash: bytes
    body: bytes


@dataclass(frozen=True, slots=True)
class Tombstone:
    """A recovered tombstone with the columns of its table."""

    kept_seq: int
    columns: tuple[Column | str, ...]


@dataclass(slots=True)
class RecoveredRows:
    """All recovered rows. An event can have several versions, later ones last."""

    events: dict[tuple[str, int], list[RecoveredEvent]] = field(default_factory=dict)
    blobs: dict[bytes, tuple[Column, ...]] = field(default_factory=dict)
    tombstones: dict[str, Tombstone] = field(default_factory=dict)
    lines: dict[SessionId, SummaryState] = field(default_factory=dict)

    def journal(self) -> list[RecoveredEvent]:
        """Return each event once, in the order of writing."""
        chosen = (self._best(versions) for versions in self.events.values())
        return sorted(chosen, key=lambda one: (one.row, one.session, one.seq))

    def _best(self, versions: list[RecoveredEvent]) -> RecoveredEvent:
        # Of several versions, choose the one whose hash follows from the previous event, otherwise the last one.
        for event in reversed(versions):
            before = self.events.get((event.session, event.seq - 1), [])
            links = (
                event_hash(one.hash, event.session, event.seq, event.at_ms, event.body) for one in before
            )
            if event.hash in links:
                return event
        return versions[-1]


def classify_rows(rows: Iterable[PageRow]) -> RecoveredRows:
    """Recognise the table of each row by its shape, and leave out deleted rows."""
    recovered = RecoveredRows()
    stale: list[RecoveredEvent] = []
    stale_lines: list[SummaryState] = []
    for row in rows:
        match row.columns:
            case (None, bytes(session), int(seq), int(at_ms), bytes(link), bytes(body)) if len(link) == 32:
                if _id(session) is not None and 0 < seq < MAX_ROW_NUMBER and 0 < row.number < MAX_ROW_NUMBER:
                    event = RecoveredEvent(row.number, session.decode(), seq, at_ms, link, body)
                    recovered.events.setdefault((event.session, seq), []).append(event)
                    if not row.is_current:
                        stale.append(event)
            case (bytes(digest), int(), bytes(content), int(), int()) if (
                digest_bytes(content) == digest.hex()
            ):
                recovered.blobs[digest] = row.columns
            case (bytes(digest), int(), None, int(), int()) if len(digest) == 32:
                recovered.blobs[digest] = row.columns
            case (bytes(session), _, int(), bytes(), int(), bytes(), int(kept), _, _):
                if (id := _id(session)) is not None:
                    recovered.tombstones[id] = Tombstone(kept, tuple(map(_text, range(9), row.columns)))
            case (bytes(session), _, bytes(), int(), _, _, bytes(state)):
                line = _line(session, state)
                if line is not None and row.is_current:
                    recovered.lines[line.summary.id] = line
                elif line is not None:
                    stale_lines.append(line)
            case _:
                continue
    _forget_deleted(recovered, stale)
    for line in stale_lines:
        if line.summary.id not in recovered.tombstones:
            recovered.lines.setdefault(line.summary.id, line)
    return recovered


def _forget_deleted(recovered: RecoveredRows, stale: Iterable[RecoveredEvent]) -> None:
    """Drop events of deleted sessions that older page versions still contain. If an id is in use again, its pages are current."""
    for event in stale:
        tombstone = recovered.tombstones.get(event.session)
        if tombstone is not None and event.seq > tombstone.kept_seq:
            versions = recovered.events[event.session, event.seq]
            versions.remove(event)
            if not versions:
                del recovered.events[event.session, event.seq]


def _line(session: bytes, state: bytes) -> SummaryState | None:
    id = _id(session)
    try:
        return decode_summary_state(state, id) if id is not None else None
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
