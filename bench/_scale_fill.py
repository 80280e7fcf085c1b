"""Databases with very many sessions: rows of the right number and size, most of which nobody opens."""

from holdfast.core import SessionId, encode
from holdfast.core.events import GENESIS, RecordedEvent, encode_event, event_hash
from holdfast.store.postgres.database import connect
from holdfast.store.summary import summarize

EVENTS = 3
_SESSIONS = """INSERT INTO session (id, folder, rank, tally, activity)
    SELECT 'fill-' || n, '/home', nextval('activity'), convert_to(replace($2::text, '@id@', 'fill-' || n), 'UTF8'), 'ready'
    FROM generate_series(1, $1::int) n"""
_LEASES = """INSERT INTO lease (session, fence, since_ms, seq, hash)
    SELECT 'fill-' || n, 1, 0, $2, $3 FROM generate_series(1, $1::int) n"""
_EVENTS = """INSERT INTO event (session, seq, at_ms, hash, body, place, part)
    SELECT 'fill-' || n, e, 0, $3, $4, 0, 1 FROM generate_series(1, $1::int) n, generate_series(1, $2::int) e"""


async def fill_sessions(url: str, count: int, like: list[RecordedEvent]) -> None:
    """Add sessions that look like this one, by the server itself."""
    connection = await connect(url, command_seconds=3600, is_admin=True)
    await connection.execute("SET synchronous_commit = off")
    await connection.execute(_SESSIONS, count, _encoded_state(SessionId("@id@"), like).decode())
    await connection.execute(_LEASES, count, EVENTS, GENESIS)
    await connection.execute(_EVENTS, count, EVENTS, GENESIS, encode_event(like[-1].event))
    await connection.execute("ANALYZE session, lease, event")
    await connection.close()


async def copy_session(url: str, like: list[RecordedEvent], count: int) -> list[SessionId]:
    """Add sessions with the same events under other ids, complete with hashes: each can be opened and answered."""
    connection = await connect(url, command_seconds=3600, is_admin=True)
    ids = [SessionId(f"parked-{number}") for number in range(count)]
    bodies = [encode_event(entry.event) for entry in like]
    offset = 0
    while offset < count:
        events, sessions, leases = [], [], []
        for rank, id in enumerate(ids[offset : offset + 10_000], offset):
            previous, own = GENESIS, []
            for seq, (entry, body) in enumerate(zip(like, bodies, strict=True), 1):
                link = event_hash(previous, id, seq, entry.at_ms, body)
                own.append(RecordedEvent(id, seq, entry.at_ms, entry.event, link, previous))
                events.append((id, seq, entry.at_ms, link, body, 1, 1))
                previous = link
            sessions.append((id, "/home", rank, _encoded_state(id, own), "waiting"))
            leases.append((id, 1, 0, len(like), previous))
        offset += 10_000
        for table, rows, columns in (
            ("event", events, ("session", "seq", "at_ms", "hash", "body", "place", "part")),
            ("session", sessions, ("id", "folder", "rank", "tally", "activity")),
            ("lease", leases, ("session", "fence", "since_ms", "seq", "hash")),
        ):
            await connection.copy_records_to_table(table, records=rows, columns=columns)
    await connection.execute("ANALYZE session, lease, event")
    await connection.close()
    return ids


def _encoded_state(session: SessionId, recorded: list[RecordedEvent]) -> bytes:
    return encode(summarize(session, recorded))
