"""The index: the list of sessions, derived from the events and made again from them when it is missing or wrong."""

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TypeGuard

import msgspec

from holdfast.core import SessionId, check_session_id, encode
from holdfast.core.errors import InvalidId
from holdfast.core.events import Parent, RecordedEvent, SessionOpened, decode_event
from holdfast.store.recovery.inspect import inspect
from holdfast.store.sqlite.database import SQL
from holdfast.store.sqlite.rows import Connection, columns_of, decode_tally
from holdfast.store.sqlite.transaction import Transaction
from holdfast.store.summary import SummaryState, empty_summary, is_activity, summarize


def is_usable(connection: Connection) -> bool:
    """A quick look: whether the line of the session with the newest event knows of it."""
    newest = connection.execute(SQL["newest_event"]).fetchone()
    if newest is None:
        return True
    session, seq = newest
    if not isinstance(seq, int):
        return False  # damaged; what can be said of it is found when the list is made anew
    row = connection.execute(SQL["find_session"], (session,)).fetchone()
    if row is None:
        return connection.execute(SQL["tombstone_of"], (session,)).fetchone() is not None
    try:
        return bool(decode_tally(row[0], session).summary.events >= seq)
    except msgspec.MsgspecError:
        return False


def rebuild(transaction: Transaction, *, noted: Mapping[SessionId, SummaryState] | None = None) -> int:
    """Make the index anew from the events; the number of sessions in it.

    What the old lines, or those that were `noted` elsewhere, say of a journal is more than there is where events were lost.
    """
    lines = _lines(transaction) | dict(noted or {})
    with suppress(sqlite3.IntegrityError):  # two events in one place are damage that inspection tells
        transaction.execute(SQL["rebuild_places"])
    buried = {id for (id,) in transaction.execute(SQL["kept_tombstones"])}
    ids = [id for (id,) in transaction.execute(SQL["sessions_with_events"]) if _is_id(id)]
    live = [id for id in dict.fromkeys((*ids, *lines)) if id not in buried]
    transaction.execute(SQL["empty_index"])
    for session in live:  # every line before any history: a fork is read through its parent's line
        _place(transaction, session, lines.get(session))
    for session in live:
        _describe(transaction, session, lines.get(session))
    return len(live)


def strayed(connection: Connection) -> list[SessionId]:
    """Sessions that have events and no line, which is how a damaged list shows. Looks through the places of all events."""
    known = {id for (id,) in connection.execute(SQL["listed_sessions"])}
    known |= {id for (id,) in connection.execute(SQL["kept_tombstones"])}
    found = (id for (id,) in connection.execute(SQL["sessions_with_events"]))
    return [id for id in found if id not in known and _is_id(id)]


def mark_damaged(transaction: Transaction, session: SessionId) -> None:
    """Note on a session's line that not all of it can be read."""
    row = transaction.execute(SQL["find_session"], (session,)).fetchone()
    if row is not None:
        _store(transaction, session, _damaged(decode_tally(row[0], session)), moved_by=None)


def _place(transaction: Transaction, session: SessionId, line: SummaryState | None) -> None:
    first = transaction.execute(SQL["first_event"], (session,)).fetchone()
    parent = _parent_in(first[0]) if first is not None else None
    if parent is None and line is not None:
        parent = line.summary.parent
    place = (session, None, "", 0, *columns_of(parent))
    transaction.execute(SQL["claim_session"], (*place, encode(empty_summary(session))))


def _parent_in(body: bytes) -> Parent | None:
    try:
        event = decode_event(body)
    except msgspec.MsgspecError:
        return None
    return event.parent if isinstance(event, SessionOpened) else None


def _lines(transaction: Transaction) -> dict[SessionId, SummaryState]:
    lines: dict[SessionId, SummaryState] = {}
    for session, body in transaction.execute(SQL["claimed_events"]):
        with suppress(msgspec.MsgspecError):
            if _is_id(session):
                lines[session] = decode_tally(body, session)
    return lines


def _is_id(text: object) -> TypeGuard[SessionId]:
    try:
        check_session_id(text if isinstance(text, str) else "")
    except InvalidId:
        return False
    return True


def _describe(transaction: Transaction, session: SessionId, line: SummaryState | None) -> None:
    found, readable = inspect(transaction, session)
    tally = summarize(session, readable) if readable else line or empty_summary(session)
    claimed = line.summary.events if line is not None else 0
    if not found.is_sound or claimed > len(readable):
        # The claim is kept: it is the only sign that the end of a journal was cut off.
        tally = _damaged(_with_summary(tally, events=max(claimed, tally.summary.events)))
    name = tally.summary.name
    if name is not None and transaction.execute(SQL["session_named"], (name,)).fetchone():
        # Two journals claim one name only where rows were lost; the id still finds the second.
        tally = _with_summary(tally, name=None)
    _store(transaction, session, tally, moved_by=_last_activity(session, readable))


def _last_activity(session: SessionId, readable: Sequence[RecordedEvent]) -> int | None:
    own = (one for one in reversed(readable) if one.session == session)
    return next((one.seq for one in own if is_activity(one)), None)


def _store(
    transaction: Transaction, session: SessionId, tally: SummaryState, *, moved_by: int | None
) -> None:
    line = tally.summary
    transaction.execute(SQL["update_session"], (session, line.name, line.folder, encode(tally), moved_by))


def _damaged(tally: SummaryState) -> SummaryState:
    return _with_summary(tally, is_damaged=True)


def _with_summary(tally: SummaryState, **changes: object) -> SummaryState:
    return msgspec.structs.replace(tally, summary=msgspec.structs.replace(tally.summary, **changes))
