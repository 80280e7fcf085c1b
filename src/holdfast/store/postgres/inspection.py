"""Verification of journals in the PostgreSQL store, and rebuilding the session list from them."""

import asyncpg
import msgspec

from holdfast.core import SessionId, check_session_id, encode
from holdfast.core.errors import InvalidId, JournalDamaged
from holdfast.core.events import GENESIS, Parent, RecordedEvent, SessionOpened, decode_event
from holdfast.store.archive.format import RawEvent
from holdfast.store.contract import Inspection
from holdfast.store.history import not_found, parent_columns
from holdfast.store.inspection import InspectedSegment, inspect_rows
from holdfast.store.postgres.database import SQL
from holdfast.store.postgres.rows import END, decode_state
from holdfast.store.postgres.shares import drop_damaged
from holdfast.store.summary import SummaryState, empty_summary, summarize


class InspectedJournal(msgspec.Struct, frozen=True):
    """What verification found, the events that can be read, and every row as it is."""

    found: Inspection
    readable: list[RecordedEvent]
    rows: list[RawEvent]


async def inspect(connection: asyncpg.Connection, session: SessionId) -> InspectedJournal:
    """Check every event of a session. In a transaction with one snapshot. Raises SessionNotFound."""
    body = await connection.fetchval(SQL["tally_of"], session)
    if body is None:
        raise not_found(session)
    try:
        claimed = decode_state(body, session).summary.events
    except JournalDamaged:
        claimed = 0
    segments: list[InspectedSegment] = []
    raw: list[RawEvent] = []
    current: str | None = session
    upto, seen, own_start = END, set[str](), 0
    while current is not None and current not in seen:
        seen.add(current)
        row = await connection.fetchrow(SQL["parent_of"], current)
        parent, parent_seq = (row["parent"], row["parent_seq"]) if row is not None else (None, None)
        after = parent_seq or 0
        own_start = after if current == session else own_start
        rows = await connection.fetch(SQL["events_between"], current, after, upto)
        part = [(one["seq"], one["at_ms"], one["hash"], one["body"], True) for one in rows]
        segments.append(
            InspectedSegment(session=SessionId(current), upto=upto if upto < END else None, rows=part)
        )
        raw[:0] = [
            RawEvent(session=SessionId(current), seq=seq, at_ms=at_ms, hash=link, body=content)
            for seq, at_ms, link, content, _ in part
        ]
        current, upto = parent, min(upto, after)
    added = [row["seq"] for row in await connection.fetch(SQL["added_events"], session, own_start)]
    found, readable = inspect_rows(session, segments[::-1], claimed=claimed, added=added)
    return InspectedJournal(found=found, readable=readable, rows=raw)


async def mark_damaged(connection: asyncpg.Connection, session: SessionId) -> None:
    """Mark a session as not completely readable. In a transaction."""
    await connection.execute("SELECT 1 FROM lease WHERE session = $1 FOR UPDATE", session)
    body = await connection.fetchval(SQL["tally_of"], session)
    if body is not None:
        await _put(connection, session, _with_summary(decode_state(body, session), is_damaged=True))


async def journals(connection: asyncpg.Connection) -> list[SessionId]:
    """Every session that has events or a row, in the order of creation."""
    return [SessionId(row["id"]) for row in await connection.fetch(SQL["journals"]) if _is_id(row["id"])]


async def rebuild(connection: asyncpg.Connection, session: SessionId) -> None:
    """Rewrite one row of the session list from the journal. In a transaction."""
    await connection.execute("SELECT 1 FROM lease WHERE session = $1 FOR UPDATE", session)
    body = await connection.fetchval(SQL["tally_of"], session)
    line = _decoded(body, session) if body is not None else None
    if body is None:
        parent = await _parent_in(connection, session)
        row = (session, None, "", *parent_columns(parent), encode(empty_summary(session)), "ready")
        await connection.execute(SQL["insert_session"], *row)
    elif line is None:
        await _put(connection, session, empty_summary(session))
    inspected = await inspect(connection, session)
    readable = inspected.readable
    state = summarize(session, readable) if readable else line or empty_summary(session)
    claimed = line.summary.events if line is not None else 0
    if not inspected.found.is_intact or claimed > len(readable):
        # The old count is kept: it is the only sign that the end of a journal is missing.
        state = _with_summary(state, is_damaged=True, events=max(claimed, state.summary.events))
    name = state.summary.name
    if name is not None and await connection.fetchval(SQL["name_taken"], session, name):
        # Two journals have the same name only if rows were lost; the second is still found by its id.
        state = _with_summary(state, name=None)
    await _put(connection, session, state)
    await drop_damaged(connection, session)
    last = inspected.rows[-1] if inspected.rows else None
    end = (last.seq, last.hash) if last is not None else (0, GENESIS)
    await connection.execute(
        "INSERT INTO lease (session, fence, since_ms, seq, hash) VALUES ($1, 1, 0, $2, $3) ON CONFLICT DO NOTHING",
        session,
        *end,
    )


async def _put(connection: asyncpg.Connection, session: SessionId, state: SummaryState) -> None:
    line = state.summary
    await connection.execute(SQL["put_tally"], session, encode(state), line.name, line.folder, line.activity)


def _decoded(body: bytes, session: SessionId) -> SummaryState | None:
    try:
        return decode_state(body, session)
    except JournalDamaged:
        return None


async def _parent_in(connection: asyncpg.Connection, session: SessionId) -> Parent | None:
    body = await connection.fetchval(SQL["first_event"], session)
    try:
        event = decode_event(body) if body is not None else None
    except msgspec.MsgspecError:
        return None
    return event.parent if isinstance(event, SessionOpened) else None


def _with_summary(state: SummaryState, **changes: object) -> SummaryState:
    return msgspec.structs.replace(state, summary=msgspec.structs.replace(state.summary, **changes))


def _is_id(text: str) -> bool:
    try:
        check_session_id(text)
    except InvalidId:
        return False
    return True
