"""What sessions used: derived tables, updated from the journals when somebody asks. An append does not touch them, because the rows of a
day would be a lock that all processes wait for."""

from collections.abc import Sequence

import asyncpg
import msgspec

from holdfast.core import SessionId
from holdfast.core.events import decode_event
from holdfast.store.derived.usage import COUNTS, SessionPlace, UsageFold, UsageTotal, is_folded, usage_total
from holdfast.store.postgres.database import SQL

BATCH_SIZE = 2000


async def catch_up(connection: asyncpg.Connection) -> None:
    """Fold the events that are new. In a transaction; one process at a time."""
    await connection.execute(SQL["begin_usage"])
    horizon = await connection.fetchval(SQL["usage_horizon"])
    now = await connection.fetchval(SQL["settled_place"])
    while rows := await connection.fetch(SQL["unfolded"], horizon, BATCH_SIZE):
        await _fold(connection, rows)
        if len(rows) < BATCH_SIZE:
            break
    await connection.execute(SQL["set_usage_horizon"], now)


async def read_totals(connection: asyncpg.Connection, since_day: str) -> list[UsageTotal]:
    """What all sessions used since a day, one row a day, model, folder and pair."""
    return [usage_total(row) for row in await connection.fetch(SQL["usage_totals"], since_day)]


async def read_parts(
    connection: asyncpg.Connection, since_day: str, session: SessionId | None
) -> list[UsageTotal]:
    """The same by session, of all or of one."""
    return [usage_total(row) for row in await connection.fetch(SQL["usage_parts"], since_day, session)]


async def forget(connection: asyncpg.Connection, session: SessionId) -> None:
    """Take a deleted session out of the totals, in the transaction that deletes it."""
    await connection.execute(SQL["begin_usage"])
    await connection.fetchval(SQL["usage_horizon"])  # nobody folds meanwhile
    await connection.execute(SQL["take_from_usage_total"], session)
    await connection.execute(SQL["drop_empty_usage"])
    for name in ("forget_usage_part", "forget_usage_place", "forget_usage_asked"):
        await connection.execute(SQL[name], session)


async def _fold(connection: asyncpg.Connection, rows: Sequence[asyncpg.Record]) -> None:
    upto: dict[str, int] = {}
    for row in rows:
        upto[row["session"]] = max(row["seq"], upto.get(row["session"], 0))
    places = {
        SessionId(row["session"]): SessionPlace(model=row["model"], folder=row["folder"], pair=row["pair"])
        for row in await connection.fetch(SQL["usage_places"], list(upto))
    }
    asked = {
        (SessionId(row["session"]), row["escalation"]): row["at_ms"]
        for row in await connection.fetch(SQL["usage_asked"])
    }
    fold = UsageFold(places, asked)
    for session, _, at_ms, body in rows:
        if is_folded(body):
            try:
                fold.add(SessionId(session), at_ms, decode_event(body))
            except msgspec.MsgspecError:
                continue  # `verify` reports it
    found = [
        (
            each.session,
            *_clean(*msgspec.structs.astuple(each.key)),
            *(getattr(each.counts, name) for name in COUNTS),
        )
        for each in fold.totals()
    ]
    if found:
        columns = list(map(list, zip(*found, strict=True)))
        await connection.execute(SQL["add_usage_parts"], *columns)
        await connection.execute(SQL["add_usage_totals"], *columns[1:])
    empty = SessionPlace()
    after = [(id, seq, fold.places.get(SessionId(id), empty)) for id, seq in upto.items()]
    await connection.execute(
        SQL["put_usage_places"],
        [id for id, _, _ in after],
        [seq for _, seq, _ in after],
        *map(list, zip(*(_clean(place.model, place.folder, place.pair) for *_, place in after), strict=True)),
    )
    settled = sorted(fold.settled)
    await connection.execute(SQL["settle_usage_asked"], [a for a, _ in settled], [b for _, b in settled])
    new = [(*id, at_ms) for id, at_ms in fold.asked.items() if id not in asked]
    if new:
        await connection.execute(SQL["put_usage_asked"], *map(list, zip(*new, strict=True)))


def _clean(*texts: str) -> tuple[str, ...]:
    """Texts without the one character that PostgreSQL cannot store."""
    return tuple(text.replace("\0", "") for text in texts)
