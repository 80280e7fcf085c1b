"""Sessions in the PostgreSQL store: creating, asking, finding and deleting them, each in one transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import asyncpg

from holdfast.core import SessionId, encode, is_short_id
from holdfast.core.errors import SessionHeld, SessionNotFound
from holdfast.core.events import GENESIS, RecordedEvent, SessionOpened
from holdfast.store.blobs.references import digests_in
from holdfast.store.contract import LeaseHolder, PostJobs, Redact
from holdfast.store.entries import chain_entries, encode_entry
from holdfast.store.history import Head, advance_head, not_found, parent_columns
from holdfast.store.names import IdTaken, names_in, possible_names, require_single_match
from holdfast.store.postgres.database import SQL
from holdfast.store.postgres.presence import Presence
from holdfast.store.postgres.rows import read_state
from holdfast.store.postgres.usage import forget
from holdfast.store.postgres.writer import check_names
from holdfast.store.summary import empty_summary, summarize


class NewSession:
    """A session that is about to be created, empty or with the history of another one."""

    def __init__(
        self,
        session: SessionId,
        opened: SessionOpened,
        *,
        history: Sequence[RecordedEvent],
        at_ms: int,
        redact: Redact,
    ) -> None:
        self.session = session
        self._parent = opened.parent
        self._entry = encode_entry(opened, redact)
        self._at_ms = at_ms
        self._was_attempted = False
        start = Head(
            seq=history[-1].seq if history else 0,
            hash=history[-1].hash if history else GENESIS,
            state=summarize(session, history) if history else empty_summary(session),
        )
        records = chain_entries(session, [self._entry], at_ms=at_ms, seq=start.seq, previous=start.hash)
        self.head = advance_head(start, records)
        self.history = [*history, *records]

    async def create(self, connection: asyncpg.Connection, worker: str) -> None:
        """Insert the session with its first event and its lease. Raises IdTaken, SessionExists, SessionNotFound."""
        was_attempted, self._was_attempted = self._was_attempted, True
        if self._parent is not None and not await connection.fetchval(
            SQL["lock_session"], self._parent.session
        ):
            raise not_found(self._parent.session)
        names = names_in([self._entry.event])
        await connection.execute(SQL["lock_names"], [self.session, *names])
        if await connection.fetchval(SQL["is_taken"], self.session):
            if was_attempted and await self._is_own(connection, worker):
                return
            raise IdTaken(f"there is already a session {self.session!r}", hint="choose another id")
        await check_names(connection, self.session, names)
        line, first = self.head.state.summary, self.history[-1]
        parent = parent_columns(line.parent)
        await connection.execute(
            SQL["insert_session"],
            self.session,
            line.name,
            line.folder,
            *parent,
            encode(self.head.state),
            line.activity,
        )
        await connection.execute(
            SQL["insert_lease"], self.session, worker, self._at_ms, self.head.seq, self.head.hash
        )
        await connection.execute(
            SQL["insert_events"],
            [self.session],
            [first.seq],
            [first.at_ms],
            [first.hash],
            [self._entry.body],
        )

    async def _is_own(self, connection: asyncpg.Connection, worker: str) -> bool:
        """Whether this object itself created the session, in a transaction whose answer was lost."""
        row = await connection.fetchrow("SELECT worker, hash FROM lease WHERE session = $1", self.session)
        return row is not None and (row["worker"], row["hash"]) == (worker, self.head.hash)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRequest:
    """A request that is to be kept together with a job for its session."""

    id: str
    session: SessionId
    body: bytes
    post_jobs: PostJobs


async def post_all(connection: asyncpg.Connection, requests: Sequence[NewRequest]) -> frozenset[str]:
    """Keep the requests of sessions that are there, and post the jobs for them. Returns these sessions."""
    columns = (
        [each.id for each in requests],
        [each.session for each in requests],
        [each.body for each in requests],
    )
    known = frozenset(row["session"] for row in await connection.fetch(SQL["post_requests"], *columns))
    # One job for several requests of a session: no worker sees it before it sees all of them.
    jobs: dict[PostJobs, dict[SessionId, None]] = {}
    for each in requests:
        if each.session in known:
            jobs.setdefault(each.post_jobs, {})[each.session] = None
    for post_jobs, sessions in jobs.items():
        await post_jobs(connection, list(sessions))
    return known


async def require_session(connection: asyncpg.Connection, session: SessionId) -> None:
    """Raise SessionNotFound if the session is not in the list."""
    if await connection.fetchval(SQL["tally_of"], session) is None:
        raise not_found(session)


async def holder_of(
    connection: asyncpg.Connection, session: SessionId, presence: Presence
) -> LeaseHolder | None:
    """The process that holds a session, unless it died."""
    row = await connection.fetchrow(SQL["holder"], session, timedelta(seconds=presence.seconds))
    return None if row is None else LeaseHolder(pid=row["pid"], host=row["host"], since_ms=row["since_ms"])


def held(session: SessionId, holder: LeaseHolder, now_ms: int) -> SessionHeld:
    """Create the error for a session that another process, or this one, holds."""
    minutes = max(now_ms - holder.since_ms, 0) // 60_000
    time = f"for {minutes} min" if minutes else "for less than a minute"
    return SessionHeld(
        f"{session!r} is held by process {holder.pid} on {holder.host}, {time}",
        hint=f"close it there, wait for it with `holdfast -r {session} --wait SECONDS`, or follow it with "
        f"`holdfast show {session} --follow`",
    )


async def find(connection: asyncpg.Connection, reference: str) -> SessionId:
    """Find a session by id, name, unique prefix or short id."""
    reference = reference.replace("\0", "\ufffd")  # which no id contains and PostgreSQL cannot compare
    names = list(possible_names(reference))
    found = await connection.fetchval(SQL["named"], reference, names)
    if found is not None:
        return SessionId(found)
    rows = await connection.fetch(SQL["beginning"], reference, reference + "\U0010ffff")
    if not rows and is_short_id(reference):
        rows = await connection.fetch(SQL["ending"], reference)
    if not rows and reference:
        await _raise_if_removed(connection, names)
    return require_single_match(reference, [SessionId(row["id"]) for row in rows])


async def _raise_if_removed(connection: asyncpg.Connection, names: list[str]) -> None:
    row = await connection.fetchrow(SQL["removal_of"], names)
    if row is not None:
        day = datetime.fromtimestamp(row["deleted_ms"] / 1000, tz=UTC).date()
        raise SessionNotFound(
            f"{row['session']!r} was {row['reason']} on {day}",
            hint="if you have an export, restore it with: holdfast import FILE",
        )


async def remove(
    connection: asyncpg.Connection, session: SessionId, *, reason: str, now_ms: int, presence: Presence
) -> frozenset[str]:
    """Delete a session's rows and write a tombstone. Returns the blobs that it referred to. Raises SessionHeld."""
    lease = await connection.fetchrow(SQL["lock_lease"], session, timedelta(seconds=presence.seconds))
    line = (await read_state(connection, session)).summary
    if lease is not None and lease["is_alive"]:
        holder = LeaseHolder(pid=lease["pid"], host=lease["host"], since_ms=lease["since_ms"])
        raise held(session, holder, now_ms)
    last = await connection.fetchval("SELECT hash FROM lease WHERE session = $1", session)
    await connection.execute(SQL["delete_session"], session)
    await connection.execute(SQL["delete_lease"], session)
    await connection.execute(SQL["delete_shares"], session)
    await connection.execute(SQL["remove_requests"], session)
    await forget(connection, session)
    tombstone = (session, line.name, now_ms, reason, line.events, last or b"")
    await connection.execute(SQL["write_tombstone"], *tombstone, *parent_columns(line.parent))
    digests: set[str] = set()
    current: str | None = session
    # A deleted session keeps the events that its forks share. When the last fork is deleted, so are these.
    while current is not None:
        row = await connection.fetchrow(SQL["tombstone_of"], current)
        if row is None:
            break
        needed = await connection.fetchval(SQL["forks_of"], current) or 0
        for (body,) in await connection.fetch(SQL["delete_events"], current, needed):
            digests |= digests_in(body)
        for query in ("delete_passages", "shrink_searched", "shrink_tombstone"):
            await connection.execute(SQL[query], current, needed)
        current = None if needed else row["parent"]
    return frozenset(digests)
