"""The session index: the session list, derived from the events and rebuilt from them if it is missing or wrong."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TypeGuard

import msgspec

from holdfast.core import SessionId, check_session_id, encode
from holdfast.core.errors import InvalidId
from holdfast.core.events import Parent, RecordedEvent, SessionOpened, decode_event
from holdfast.store.history import decode_summary_state, parent_columns
from holdfast.store.recovery.inspect import inspect
from holdfast.store.sqlite.database import SQL
from holdfast.store.sqlite.rows import Connection
from holdfast.store.sqlite.shares import drop_damaged_shares
from holdfast.store.sqlite.transaction import Transaction
from holdfast.store.summary import SummaryState, empty_summary, is_activity, summarize


def is_usable(connection: Connection) -> bool:
    """Check quickly whether the index includes the newest event."""
    newest = connection.execute(SQL["newest_event"]).fetchone()
    if newest is None:
        return True
    session, seq = newest
    if not isinstance(seq, int):
        return False  # damaged; the rebuild finds out more
    row = connection.execute(SQL["find_session"], (session,)).fetchone()
    if row is None:
        return connection.execute(SQL["tombstone_of"], (session,)).fetchone() is not None
    try:
        return bool(decode_summary_state(row[0], session).summary.events >= seq)
    except msgspec.MsgspecError:
        return False


def rebuild(transaction: Transaction, *, noted: Mapping[SessionId, SummaryState] | None = None) -> int:
    """Rebuild the index from the events, and return the number of sessions.

    If events were lost, the old rows, or those `noted` elsewhere, know more about a journal than its remaining events.
    """
    lines = _lines(transaction) | dict(noted or {})
    with suppress(sqlite3.IntegrityError):  # two events at one position are damage, which inspection reports
        transaction.execute(SQL["reindex_events"])
    buried = {id for (id,) in transaction.execute(SQL["kept_tombstones"])}
    ids = [id for (id,) in transaction.execute(SQL["sessions_with_events"]) if _is_id(id)]
    live = [id for id in dict.fromkeys((*ids, *lines)) if id not in buried]
    transaction.execute(SQL["empty_index"])
    for session in live:  # all rows before any history, because a fork is read through its parent's row
        _place(transaction, session, lines.get(session))
    for session in live:
        _describe(transaction, session, lines.get(session))
    drop_damaged_shares(transaction)
    return len(live)


def unlisted_sessions(connection: Connection) -> list[SessionId]:
    """Find sessions that have events but no row, a sign of a damaged index. Scans the positions of all events."""
    known = {id for (id,) in connection.execute(SQL["listed_sessions"])}
    known |= {id for (id,) in connection.execute(SQL["kept_tombstones"])}
    found = (id for (id,) in connection.execute(SQL["sessions_with_events"]))
    return [id for id in found if id not in known and _is_id(id)]


def mark_damaged(transaction: Transaction, session: SessionId) -> None:
    """Mark a session as not completely readable."""
    row = transaction.execute(SQL["find_session"], (session,)).fetchone()
    if row is not None:
        _store(transaction, session, _damaged(decode_summary_state(row[0], session)), moved_by=None)


def _place(transaction: Transaction, session: SessionId, line: SummaryState | None) -> None:
    first = transaction.execute(SQL["first_event"], (session,)).fetchone()
    parent = _parent_in(first[0]) if first is not None else None
    if parent is None and line is not None:
        parent = line.summary.parent
    place = (session, None, "", 0, *parent_columns(parent))
    transaction.execute(SQL["insert_session"], (*place, encode(empty_summary(session))))


def _parent_in(body: bytes) -> Parent | None:
    try:
        event = decode_event(body)
    except msgspec.MsgspecError:
        return None
    return event.parent if isinstance(event, SessionOpened) else None


def _lines(transaction: Transaction) -> dict[SessionId, SummaryState]:
    lines: dict[SessionId, SummaryState] = {}
    for session, body in transaction.execute(SQL["list_summaries"]):
        with suppress(msgspec.MsgspecError):
            if _is_id(session):
                lines[session] = decode_summary_state(body, session)
    return lines


def _is_id(text: object) -> TypeGuard[SessionId]:
    try:
        check_session_id(text if isinstance(text, str) else "")
    except InvalidId:
        return False
    return True


def _describe(transaction: Transaction, session: SessionId, line: SummaryState | None) -> None:
    found, readable = inspect(transaction, session)
    state = summarize(session, readable) if readable else line or empty_summary(session)
    claimed = line.summary.events if line is not None else 0
    if not found.is_intact or claimed > len(readable):
        # The old count is kept: it is the only sign that the end of a journal is missing.
        state = _damaged(_with_summary(state, events=max(claimed, state.summary.events)))
    name = state.summary.name
    if name is not None and transaction.execute(SQL["session_named"], (name,)).fetchone():
        # Two journals have the same name only if rows were lost; the second is still found by its id.
        state = _with_summary(state, name=None)
    _store(transaction, session, state, moved_by=_last_activity(session, readable))


def _last_activity(session: SessionId, readable: Sequence[RecordedEvent]) -> int | None:
    own = (one for one in reversed(readable) if one.session == session)
    return next((one.seq for one in own if is_activity(one)), None)


def _store(
    transaction: Transaction, session: SessionId, state: SummaryState, *, moved_by: int | None
) -> None:
    line = state.summary
    transaction.execute(SQL["update_session"], (session, line.name, line.folder, encode(state), moved_by))


def _damaged(state: SummaryState) -> SummaryState:
    return _with_summary(state, is_damaged=True)


def _with_summary(state: SummaryState, **changes: object) -> SummaryState:
    return msgspec.structs.replace(state, summary=msgspec.structs.replace(state.summary, **changes))
