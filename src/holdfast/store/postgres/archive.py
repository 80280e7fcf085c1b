"""Export and import of sessions in the PostgreSQL store."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import asyncpg

from holdfast.core import SessionId, digest_bytes, encode
from holdfast.core.errors import InvalidName, SessionExists
from holdfast.core.events import RecordedEvent, Signer, decode_event
from holdfast.store.archive.format import ArchiveReader, RawEvent, segments
from holdfast.store.archive.transfer import arrival_events, write_archive
from holdfast.store.contract import ArchiveLimits, ArchiveManifest, Arrival, FindSigner, SignArchive
from holdfast.store.entries import chain_entries, encode_entry
from holdfast.store.history import parent_columns
from holdfast.store.names import alias
from holdfast.store.postgres.blob_store import PostgresBlobStore
from holdfast.store.postgres.database import SQL
from holdfast.store.postgres.inspection import InspectedJournal
from holdfast.store.postgres.spool import Span, Spool
from holdfast.store.summary import summarize


async def export(
    store: PostgresBlobStore,
    inspected: InspectedJournal,
    path: Path,
    *,
    name: str | None,
    now_ms: int,
    sign: SignArchive | None,
) -> ArchiveManifest:
    """Write a session to an archive; of a damaged one, what can be read."""
    legible = {one.seq for one in inspected.readable}
    lines = [line for line in inspected.rows if line.seq in legible]
    manifest = ArchiveManifest(
        session=inspected.found.session,
        events=lines[-1].seq if lines else 0,
        last_hash=lines[-1].hash.hex() if lines else "",
        exported_ms=now_ms,
        name=name,
        problems=inspected.found.problems,
    )
    digests = sorted(await store.referenced_blobs(line.body for line in lines))
    spool = Spool()
    kept = {
        digest: spool.put(content)
        async for digest, content in store.fetch([bytes.fromhex(digest) for digest in digests])
    }
    return await asyncio.to_thread(write_archive, path, manifest, lines, _blobs(spool, kept), sign)


def _blobs(spool: Spool, kept: dict[str, bytes | Span]) -> Iterator[tuple[str, bytes | None]]:
    for digest, place in sorted(kept.items()):
        content = spool.get(place)
        # A damaged blob does not prevent the export of the journal.
        yield digest, content if digest_bytes(content) == digest else None


async def read_archive(
    store: PostgresBlobStore,
    path: Path,
    limits: ArchiveLimits | None,
    find_signer: FindSigner | None,
    stored: list[str],
) -> tuple[list[RawEvent], list[RecordedEvent], Signer]:
    """Check an archive, store its blobs and return its journal and who signed it. `stored` gets the digests.

    Raises InvalidInput, JournalDamaged.
    """
    reader = await asyncio.to_thread(ArchiveReader, path, limits)
    try:
        _, lines, events = await asyncio.to_thread(reader.journal)
        for digest in await asyncio.to_thread(reader.digests):
            stored.append(digest)
            await store.put_blob(await asyncio.to_thread(reader.blob, digest))
        signer = await asyncio.to_thread(reader.signer, find_signer)
    finally:
        reader.close()
    recorded = [
        RecordedEvent(session=line.session, seq=line.seq, at_ms=line.at_ms, event=event, hash=line.hash)
        for line, event in zip(lines, events, strict=True)
    ]
    return list(lines), recorded, signer


async def check_absent(connection: asyncpg.Connection, session: SessionId) -> None:
    """Raise SessionExists if the id of an archive's session is taken."""
    if await connection.fetchval(SQL["tally_of"], session) is not None:
        raise SessionExists(
            f"there is already a session {session!r}", hint=f"delete it first: holdfast delete {session}"
        )
    if await connection.fetchval(SQL["is_taken"], session):
        raise SessionExists(
            f"{session!r} was deleted, but forks still use its first events",
            hint="continue one of the forks, or export and delete them first",
        )


async def insert_session(
    connection: asyncpg.Connection,
    lines: Sequence[RawEvent],
    recorded: list[RecordedEvent],
    arrival: Arrival,
    now_ms: int,
    signer: Signer,
) -> None:
    """Insert the session of an archive, with the ancestors that are missing. In a transaction."""
    *ancestors, own = segments(lines)
    session = own[0].session
    await connection.execute(SQL["lock_names"], sorted({line.session for line in lines}))
    await check_absent(connection, session)
    missing: list[RawEvent] = []
    for segment in ancestors:
        rest = await _missing_events(connection, segment)
        missing += rest
        if rest:
            await _insert_tombstone(connection, segment, now_ms)
    added = await _record_arrival(connection, arrival, session, recorded, now_ms, signer)
    await _insert_events(connection, [*missing, *own, *added])


async def _missing_events(connection: asyncpg.Connection, segment: Sequence[RawEvent]) -> Sequence[RawEvent]:
    # An ancestor that already exists is shared if both agree as far as they overlap.
    session = segment[0].session
    is_live = await connection.fetchval(SQL["lock_session"], session) is not None
    rows = await connection.fetch(SQL["event_hashes"], session, segment[-1].seq)
    known = {row["seq"]: row["hash"] for row in rows}
    if any(known.get(line.seq, line.hash) != line.hash for line in segment):
        raise SessionExists(f"another session already has the id {session!r} of this session's ancestor")
    rest = [line for line in segment if line.seq not in known]
    if rest and is_live:
        raise SessionExists(f"the ancestor {session!r} exists here, but has fewer events than the archive")
    return rest


async def _insert_tombstone(connection: asyncpg.Connection, segment: Sequence[RawEvent], now_ms: int) -> None:
    first, last = segment[0], segment[-1]
    parent = parent_columns(getattr(decode_event(first.body), "parent", None))
    reason = "imported as the beginning of a fork"
    columns = (first.session, None, now_ms, reason, last.seq, last.hash)
    await connection.execute(SQL["write_tombstone"], *columns, *parent)


async def _insert_events(connection: asyncpg.Connection, lines: Sequence[RawEvent]) -> None:
    columns = (
        [line.session for line in lines],
        [line.seq for line in lines],
        [line.at_ms for line in lines],
        [line.hash for line in lines],
        [line.body for line in lines],
    )
    await connection.execute(SQL["insert_events"], *columns)


async def _record_arrival(
    connection: asyncpg.Connection,
    arrival: Arrival,
    session: SessionId,
    recorded: list[RecordedEvent],
    now_ms: int,
    signer: Signer,
) -> list[RawEvent]:
    """Insert the row and the lease of the session, and return the events that end its import."""
    old_name = summarize(session, recorded).summary.name
    name = await _free_name(connection, session, old_name) if old_name is not None else None
    events = arrival_events(recorded, arrival, old_name=old_name, name=name, signer=signer)
    entries = [encode_entry(event, bytes) for event in events]
    last = recorded[-1]
    added = chain_entries(session, entries, at_ms=now_ms, seq=last.seq, previous=last.hash)
    state = summarize(session, [*recorded, *added])
    line = state.summary
    row = (session, line.name, line.folder, *parent_columns(line.parent), encode(state), line.activity)
    await connection.execute(SQL["insert_session"], *row)
    end = added[-1] if added else last
    await connection.execute(SQL["insert_lease"], session, None, 0, end.seq, end.hash)
    return [
        RawEvent(session=session, seq=one.seq, at_ms=one.at_ms, hash=one.hash, body=entry.body)
        for one, entry in zip(added, entries, strict=True)
    ]


async def _free_name(connection: asyncpg.Connection, session: SessionId, given: str) -> str | None:
    """The name in its stored form; None if it is invalid or taken."""
    try:
        name = alias(given)
    except InvalidName:
        return None
    await connection.execute(SQL["lock_names"], [name])
    return None if await connection.fetchval(SQL["name_taken"], session, name) else name
