"""Looking things up: a session by what a person calls it, its line, its journal. Reads only; runs in the reader's thread."""

from holdfast.core import SessionId
from holdfast.core.errors import InvalidInput, SessionNotFound
from holdfast.core.events import Recorded
from holdfast.store.contract import SessionSummary
from holdfast.store.database import SQL
from holdfast.store.naming import possible_names, the_only
from holdfast.store.rows import (
    Connection,
    Head,
    damaged,
    decode_tally,
    read_history,
    read_tally,
    require_listed,
)


def load(connection: Connection, session: SessionId) -> tuple[Head, list[Recorded]]:
    """A whole journal and where it ends. Raises SessionNotFound, JournalDamaged."""
    history = read_history(connection, session)
    tally = read_tally(connection, session)
    if tally.summary.events != len(history):
        raise damaged(session, len(history) + 1)
    return Head(seq=history[-1].seq, hash=history[-1].hash, tally=tally), history


def load_upto(connection: Connection, session: SessionId, at: int) -> list[Recorded]:
    """A journal up to and with one event. Raises InvalidInput where that is none of its events."""
    events = read_tally(connection, session).summary.events
    if not 1 <= at <= events:
        raise InvalidInput(f"{session!r} has the events 1 to {events}, {at} is not one of them")
    return read_history(connection, session, upto=at)


def load_after(connection: Connection, session: SessionId, after: int) -> list[Recorded]:
    """What a journal holds behind one event. Raises SessionNotFound, JournalDamaged."""
    after = max(after, 0)
    events = read_tally(connection, session).summary.events  # a deleted parent has rows, but is no session
    history = read_history(connection, session, after=after)
    if after + len(history) < events:
        raise damaged(session, after + len(history) + 1)
    return history


def newest(connection: Connection, *, limit: int | None, folder: str | None) -> list[SessionSummary]:
    """The list of sessions, newest activity first."""
    rows = -1 if limit is None else max(limit, 0)
    if folder is None:
        found = connection.execute(SQL["list_sessions"], (rows,))
    else:
        found = connection.execute(SQL["list_folder"], (folder, rows))
    return [decode_tally(body, id).summary for id, body in found]


def find(connection: Connection, reference: str) -> SessionId:
    """The session with this id, this name or, if only one fits, this prefix."""
    if connection.execute(SQL["find_session"], (reference,)).fetchone():
        return SessionId(reference)
    for name in possible_names(reference):
        row = connection.execute(SQL["session_named"], (name,)).fetchone()
        if row is not None:
            return SessionId(row[0])
    require_listed(connection, reference)
    rows = connection.execute(SQL["sessions_beginning"], (reference, reference + "\U0010ffff"))
    fitting = [SessionId(id) for (id,) in rows]
    if not fitting:
        _tell_removed(connection, reference)
    return the_only(reference, fitting)


def _tell_removed(connection: Connection, reference: str) -> None:
    """Raises SessionNotFound where the session is not there because somebody removed it."""
    for name in possible_names(reference):
        row = connection.execute(SQL["removal_of"], (name,)).fetchone()
        if row is not None:
            session, reason, day = row
            raise SessionNotFound(
                f"{session!r} was {reason}{day}",
                hint="where there is an export of it, holdfast import FILE brings it back",
            )
