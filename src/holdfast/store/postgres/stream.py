"""What a page over all sessions reads: pages of the session list, what waits, and the events of all sessions in order."""

import asyncio
from collections.abc import Iterable
from typing import Literal

import asyncpg
import msgspec

from holdfast.core import Escalation, SessionId
from holdfast.core.events import EscalationOpened, decode_event
from holdfast.store.contract import SessionPage, StreamedEvent, WaitingEscalation
from holdfast.store.page_place import MAX_PAGE, parse_place
from holdfast.store.postgres.database import SQL, Database
from holdfast.store.postgres.rows import END, decode_state, read_history, read_state
from holdfast.store.summary import SummaryState

PART_BITS = 20
"""A row is the place of a transaction and the position in it. A transaction has a few hundred events, an import more."""
_PARTS = 1 << PART_BITS
SETTLE_SECONDS = 5.0
"""How long a reader waits for earlier transactions of other programs to end, before it shows less."""
_LAST = "\U0010ffff"
"""Sorts behind every id."""


async def page_sessions(
    connection: asyncpg.Connection,
    *,
    before: str | None,
    limit: int,
    folder: str | None,
    activity: Literal["processing", "waiting"] | None,
) -> SessionPage:
    """One page of the session list."""
    rank, id = (END, _LAST) if before is None else parse_place(before)
    size = max(1, min(limit, MAX_PAGE))
    query = (rank, id, folder, size + 1)
    if activity is None:
        rows = await connection.fetch(SQL["page_sessions"], *query)
    else:
        rows = await connection.fetch(SQL["page_active"], *query, activity)
    shown = rows[:size]
    return SessionPage(
        sessions=tuple(decode_state(row["tally"], row["id"]).summary for row in shown),
        next=f"{shown[-1]['rank']}.{shown[-1]['id']}" if len(rows) > size else None,
    )


async def read_waiting(connection: asyncpg.Connection, session: SessionId | None) -> list[WaitingEscalation]:
    """What waits for a person, of one session or of all, in the order of the session list. Raises SessionNotFound."""
    if session is not None:
        states = [await read_state(connection, session)]
    else:
        rows = await connection.fetch(SQL["waiting_sessions"])
        states = [decode_state(row["tally"], row["id"]) for row in rows]
    own = await _own_escalations(connection, states)
    found: list[WaitingEscalation] = []
    for state in states:
        line = state.summary
        for each in state.waiting:
            escalation = own.get((line.id, each.seq)) or await _inherited(connection, line.id, each.seq)
            if escalation is not None:
                title = line.title or line.first_words
                found.append(
                    WaitingEscalation(session=line.id, name=line.name, escalation=escalation, title=title)
                )
    return found


async def _own_escalations(
    connection: asyncpg.Connection, states: Iterable[SummaryState]
) -> dict[tuple[str, int], Escalation]:
    """The escalations that sessions opened themselves, all with one query."""
    places = [(state.summary.id, each.seq) for state in states for each in state.waiting]
    rows = await connection.fetch(
        SQL["events_at"], [session for session, _ in places], [seq for _, seq in places]
    )
    return {
        (row["session"], row["seq"]): event.escalation
        for row in rows
        if isinstance(event := decode_event(row["body"]), EscalationOpened)
    }


async def _inherited(connection: asyncpg.Connection, session: SessionId, seq: int) -> Escalation | None:
    """The escalation that a fork shares with its parent."""
    for entry in await read_history(connection, session, after=seq - 1, upto=seq):
        if isinstance(entry.event, EscalationOpened):
            return entry.event.escalation
    return None


async def last_row(database: Database) -> int:
    """The row of the newest event."""
    settled = await _settled_place(database)
    row = await database.read(lambda connection: connection.fetchrow(SQL["last_place"], settled))
    return 0 if row is None else _row(row["place"], row["part"])


async def read_events_after(database: Database, row: int, limit: int) -> list[StreamedEvent]:
    """The events of all sessions behind a row, in order."""
    settled = await _settled_place(database)
    place, part = divmod(row, _PARTS)
    rows = await database.read(
        lambda connection: connection.fetch(SQL["events_after"], place, part, settled, max(1, limit))
    )
    found: list[StreamedEvent] = []
    for one in rows:
        try:
            event = decode_event(one["body"])
        except msgspec.MsgspecError:
            continue
        found.append(
            StreamedEvent(
                row=_row(one["place"], one["part"]),
                session=SessionId(one["session"]),
                seq=one["seq"],
                at_ms=one["at_ms"],
                event=event,
            )
        )
    return found


def _row(place: int, part: int) -> int:
    return place * _PARTS + min(part, _PARTS - 1)


async def _settled_place(database: Database) -> int:
    """The place up to which everything is there, behind all that is there now unless a transaction runs for long."""

    async def look(connection: asyncpg.Connection) -> tuple[int, int]:
        newest = await connection.fetchval(SQL["newest_place"])
        return await connection.fetchval(SQL["settled_place"]), newest or 0

    loop = asyncio.get_running_loop()
    deadline = loop.time() + SETTLE_SECONDS
    settled, newest = await database.read(look)
    while settled <= newest and loop.time() < deadline:
        await asyncio.sleep(0.002)
        settled, _ = await database.read(look)
    return settled
