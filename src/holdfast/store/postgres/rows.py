"""Reading journals and summaries."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

import asyncpg
import msgspec

from holdfast.core import SessionId
from holdfast.core.errors import InvalidInput, JournalDamaged
from holdfast.core.events import GENESIS, RecordedEvent
from holdfast.store.contract import SessionSummary
from holdfast.store.history import (
    Head,
    damaged,
    decode_rows,
    decode_summary_state,
    gc_paused,
    not_found,
)
from holdfast.store.postgres.database import SQL
from holdfast.store.summary import SummaryState

END = 2**62
_BATCH_SIZE = 64


async def read_history(
    connection: asyncpg.Connection, session: SessionId, *, after: int = 0, upto: int = END
) -> list[RecordedEvent]:
    """Read a session's events, including those of its ancestors, and check each against its hash."""
    # The event before the first one is read as well, for its hash.
    rows = await connection.fetch(SQL["history"], session, max(after - 1, 0), upto)
    previous = GENESIS
    if after > 0 and rows:
        if rows[0]["seq"] == after:
            previous = rows.pop(0)["hash"]
        elif rows[0]["seq"] > after:
            raise damaged(session, after)
    with gc_paused():
        return _decode(session, after, previous, rows)


def _decode(
    session: SessionId, after: int, previous: bytes, rows: Sequence[asyncpg.Record]
) -> list[RecordedEvent]:
    history: list[RecordedEvent] = []
    place = after
    for writer, own in groupby(rows, itemgetter(0)):
        columns = [tuple(row)[1:] for row in own]
        for start in range(0, len(columns), _BATCH_SIZE):
            batch = columns[start : start + _BATCH_SIZE]
            history += decode_rows(session, SessionId(writer), place, previous, batch)
            place, previous = history[-1].seq, history[-1].hash
    return history


async def read_state(connection: asyncpg.Connection, session: SessionId) -> SummaryState:
    """Read a session's summary. Raises SessionNotFound, or JournalDamaged if the session list is damaged."""
    body = await connection.fetchval(SQL["tally_of"], session)
    if body is None:
        raise not_found(session)
    return decode_state(body, session)


def decode_state(body: bytes, session: str) -> SummaryState:
    """Decode a stored summary. Raises JournalDamaged."""
    try:
        return decode_summary_state(body, session)
    except msgspec.MsgspecError as problem:
        raise JournalDamaged(
            f"the row of {session!r} in the session list cannot be read",
            hint="rebuild the list with: holdfast rebuild-index",
        ) from problem


async def load(connection: asyncpg.Connection, session: SessionId) -> tuple[Head, list[RecordedEvent]]:
    """Load a whole journal and its end. Raises SessionNotFound, JournalDamaged."""
    state = await read_state(connection, session)
    history = await read_history(connection, session)
    if not history or state.summary.events != len(history):
        raise damaged(session, len(history) + 1)
    return Head(seq=history[-1].seq, hash=history[-1].hash, state=state), history


async def load_upto(connection: asyncpg.Connection, session: SessionId, at: int) -> list[RecordedEvent]:
    """Load a journal up to and including one event. Raises InvalidInput if there is no such event."""
    events = (await read_state(connection, session)).summary.events
    if not 1 <= at <= events:
        raise InvalidInput(f"{session!r} has events 1 to {events}, but no event {at}")
    history = await read_history(connection, session, upto=at)
    if len(history) < at:
        raise damaged(session, len(history) + 1)
    return history


async def load_after(connection: asyncpg.Connection, session: SessionId, after: int) -> list[RecordedEvent]:
    """Load the events of a journal after one event. Raises SessionNotFound, JournalDamaged."""
    after = max(after, 0)
    events = (await read_state(connection, session)).summary.events  # first, because the journal may grow
    history = await read_history(connection, session, after=after)
    if after + len(history) < events:
        raise damaged(session, after + len(history) + 1)
    return history


async def list_sessions(
    connection: asyncpg.Connection, *, limit: int | None, folder: str | None
) -> list[SessionSummary]:
    """List sessions by activity, newest first."""
    rows = None if limit is None else max(limit, 0)
    if folder is None:
        found = await connection.fetch(SQL["list_sessions"], rows)
    else:
        found = await connection.fetch(SQL["list_folder"], rows, folder)
    return [decode_state(body, id).summary for id, body in found]
