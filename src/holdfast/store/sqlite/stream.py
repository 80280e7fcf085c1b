"""What a page over all sessions reads: pages of the session list, what waits, and the events of all sessions in order."""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from holdfast.core import Escalation, SessionId, encode
from holdfast.core.errors import SessionNotFound
from holdfast.core.events import EscalationOpened, RecordedEvent, decode_event, event_hash
from holdfast.store.contract import SessionPage, StreamedEvent, WaitingEscalation
from holdfast.store.history import decode_summary_state
from holdfast.store.page_place import MAX_PAGE, parse_place
from holdfast.store.sqlite.database import SQL
from holdfast.store.sqlite.rows import END, Connection, read_history
from holdfast.store.summary import SummaryState

_LAST = "\U0010ffff"
"""Sorts behind every id."""


def page_sessions(
    connection: Connection,
    *,
    before: str | None,
    limit: int,
    folder: str | None,
    activity: Literal["processing", "waiting"] | None,
) -> SessionPage:
    """One page of the session list."""
    rank, id = (END, _LAST) if before is None else parse_place(before)
    size = max(1, min(limit, MAX_PAGE))
    part = b"" if activity is None else f'"activity":"{activity}"'.encode()
    rows = connection.execute(SQL["page_sessions"], (rank, id, folder, part, size + 1)).fetchall()
    shown = rows[:size]
    return SessionPage(
        sessions=tuple(decode_summary_state(body, id).summary for id, body, _ in shown),
        next=f"{shown[-1][2]}.{shown[-1][0]}" if len(rows) > size else None,
    )


def read_waiting(connection: Connection, session: SessionId | None) -> list[WaitingEscalation]:
    """What waits for a person, of one session or of all, in the order of the session list. Raises SessionNotFound, JournalDamaged."""
    if session is None:
        rows = connection.execute(SQL["waiting_sessions"]).fetchall()
    else:
        row = connection.execute(SQL["find_session"], (session,)).fetchone()
        if row is None:
            raise SessionNotFound(f"there is no session {session!r}")
        rows = [(session, row[0])]
    states = [decode_summary_state(body, SessionId(id)) for id, body in rows]
    own = _own_escalations(connection, states)
    return [
        WaitingEscalation(
            session=line.id, name=line.name, escalation=escalation, title=line.title or line.first_words
        )
        for line, state in ((state.summary, state) for state in states)
        for escalation in _escalations(connection, line.id, state, own)
    ]


def _own_escalations(
    connection: Connection, states: Sequence[SummaryState]
) -> dict[tuple[str, int], Escalation]:
    """The escalations that sessions opened themselves, all with one query. What is damaged is left out."""
    places = [(state.summary.id, each.seq) for state in states for each in state.waiting if each.seq]
    if not places:
        return {}
    found: dict[tuple[str, int], Escalation] = {}
    for session, seq, at_ms, link, body, previous in connection.execute(SQL["events_at"], (encode(places),)):
        try:
            if event_hash(previous, session, seq, at_ms, body) == link:
                event = decode_event(body)
                if isinstance(event, EscalationOpened):
                    found[session, seq] = event.escalation
        except (msgspec.MsgspecError, TypeError):  # columns of a damaged row can have any type
            continue
    return found


def _escalations(
    connection: Connection,
    session: SessionId,
    state: SummaryState,
    own: Mapping[tuple[str, int], Escalation],
) -> list[Escalation]:
    if all((session, each.seq) in own for each in state.waiting):
        return [own[session, each.seq] for each in state.waiting]
    # Some are shared with a parent, damaged, or in a row of an older version, which does not say where.
    waiting = {each.escalation for each in state.waiting}
    recorded: list[RecordedEvent] = []
    if all(each.seq for each in state.waiting):
        for each in state.waiting:
            recorded += read_history(connection, session, after=each.seq - 1, upto=each.seq)
    else:
        recorded = read_history(connection, session)
    opened = (entry.event.escalation for entry in recorded if isinstance(entry.event, EscalationOpened))
    return [escalation for escalation in opened if escalation.id in waiting]


def read_events_after(connection: Connection, row: int, limit: int) -> list[StreamedEvent]:
    """The events of all sessions behind a row, in order."""
    found: list[StreamedEvent] = []
    for place, session, seq, at_ms, body in connection.execute(SQL["events_after"], (row, max(1, limit))):
        try:
            event = decode_event(body)
        except msgspec.MsgspecError:
            continue
        found.append(StreamedEvent(row=place, session=session, seq=seq, at_ms=at_ms, event=event))
    return found


def last_row(connection: Connection) -> int:
    """The row of the newest event."""
    (row,) = connection.execute(SQL["last_row"]).fetchone()
    return int(row)
