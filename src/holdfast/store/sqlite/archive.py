"""Export and import of sessions in the SQLite store. An import is checked, inserted and stripped of its permissions."""

import asyncio
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from holdfast.core import SessionId, check_session_id, encode
from holdfast.core.errors import HoldfastError, InvalidName, JournalDamaged, SessionExists
from holdfast.core.events import RecordedEvent, Signer, decode_event
from holdfast.store.archive.format import ArchiveReader, RawEvent, segments
from holdfast.store.archive.transfer import arrival_events, check_target, write_archive
from holdfast.store.blobs.store import MAX_ROW_BYTES, Blobs, referenced_blobs
from holdfast.store.contract import (
    ArchiveLimits,
    ArchiveManifest,
    Arrival,
    FindSigner,
    PrepareArrival,
    SignArchive,
)
from holdfast.store.entries import chain_entries, encode_entry
from holdfast.store.history import parent_columns
from holdfast.store.names import alias
from holdfast.store.recovery.inspect import inspect, read_raw_events
from holdfast.store.sqlite.blob_store import SqliteBlobStore
from holdfast.store.sqlite.database import SQL
from holdfast.store.sqlite.rows import append_records, read_summary_state
from holdfast.store.sqlite.transaction import Transaction
from holdfast.store.summary import summarize


async def export_session(
    store: SqliteBlobStore, session: SessionId, path: Path, *, now_ms: int, sign: SignArchive | None = None
) -> ArchiveManifest:
    """Write a session to an archive; of a damaged one, what can be read. Raises InvalidInput."""
    key = check_session_id(session)
    check_target(path)
    return await store.reading(lambda connection: _export(connection, store.blobs, key, path, now_ms, sign))


async def import_session(
    store: SqliteBlobStore,
    path: Path,
    *,
    now_ms: int,
    prepare: PrepareArrival | None = None,
    limits: ArchiveLimits | None = None,
    find_signer: FindSigner | None = None,
) -> SessionId:
    """Add the session of an archive. Raises InvalidInput, JournalDamaged if it was changed, SessionExists."""
    reader = await store.reading(lambda _: ArchiveReader(path, limits))
    stored: list[str] = []
    try:
        manifest, lines, events = await store.reading(lambda _: reader.journal())
        await store.reading(lambda connection: _check_absent(connection, manifest.session))
        for digest in await store.reading(lambda _: reader.digests()):
            stored.append(digest)
            await _store_blob(store, reader, digest)
        signer = await store.reading(lambda _: reader.signer(find_signer))
        recorded = [
            RecordedEvent(session=line.session, seq=line.seq, at_ms=line.at_ms, event=event, hash=line.hash)
            for line, event in zip(lines, events, strict=True)
        ]
        # Files first: a session that is listed is complete, even if this process is killed here.
        arrival = await prepare(manifest.session, recorded) if prepare is not None else Arrival()
        if not arrival.workspace:
            arrival = msgspec.structs.replace(arrival, workspace=str(store.home.workspace(manifest.session)))
        await store.writing(
            lambda transaction: _insert_session(transaction, lines, recorded, arrival, now_ms, signer)
        )
    except BaseException:
        with suppress(HoldfastError):  # on a full disk nothing can be deleted either
            await store.sweep_blobs(frozenset(stored))
        raise
    finally:
        reader.close()
    return manifest.session


async def _store_blob(store: SqliteBlobStore, reader: ArchiveReader, digest: str) -> None:
    """Store one blob: a large one piece by piece, so that it is never in memory as a whole."""
    if reader.size(digest) <= MAX_ROW_BYTES:
        await store.put_blob(await store.reading(partial(_read_blob, reader, digest)))
        return
    async with store.ingest() as ingest:
        await asyncio.to_thread(ingest.receive, digest, partial(reader.copy_blob, digest))


def _read_blob(reader: ArchiveReader, digest: str, _: sqlite3.Connection) -> bytes:
    return reader.blob(digest)


def _export(
    connection: sqlite3.Connection,
    blobs: Blobs,
    session: SessionId,
    path: Path,
    now_ms: int,
    sign: SignArchive | None,
) -> ArchiveManifest:
    found, readable = inspect(connection, session)
    legible = {one.seq for one in readable}
    lines = [line for line in read_raw_events(connection, session) if line.seq in legible]
    manifest = ArchiveManifest(
        session=session,
        events=lines[-1].seq if lines else 0,
        last_hash=lines[-1].hash.hex() if lines else "",
        exported_ms=now_ms,
        name=read_summary_state(connection, session).summary.name,
        problems=found.problems,
    )
    digests = referenced_blobs(connection, blobs, (line.body for line in lines))
    return write_archive(path, manifest, lines, _read_blobs(connection, blobs, digests), sign)


def _read_blobs(
    connection: sqlite3.Connection, blobs: Blobs, digests: Iterable[str]
) -> Iterator[tuple[str, bytes | None]]:
    for digest in sorted(digests):
        try:
            yield digest, blobs.read(connection, digest)
        except JournalDamaged:  # a damaged blob does not prevent the export of the journal
            yield digest, None


def _check_absent(connection: sqlite3.Connection | Transaction, session: SessionId) -> None:
    if connection.execute(SQL["find_session"], (session,)).fetchone():
        raise SessionExists(
            f"there is already a session {session!r}", hint=f"delete it first: holdfast delete {session}"
        )
    if connection.execute(SQL["is_taken"], (session,)).fetchone():
        raise SessionExists(
            f"{session!r} was deleted, but forks still use its first events",
            hint="continue one of the forks, or export and delete them first",
        )


def _insert_session(
    transaction: Transaction,
    lines: Sequence[RawEvent],
    recorded: list[RecordedEvent],
    arrival: Arrival,
    now_ms: int,
    signer: Signer,
) -> None:
    *ancestors, own = segments(lines)
    session = own[0].session
    _check_absent(transaction, session)
    missing = [_missing_events(transaction, segment) for segment in ancestors]
    for segment, rest in zip(ancestors, missing, strict=True):
        _insert_events(transaction, rest)
        if rest:
            _insert_tombstone(transaction, segment, now_ms)
    _insert_events(transaction, own)
    _record_arrival(transaction, arrival, session, recorded, now_ms, signer)


def _missing_events(transaction: Transaction, segment: Sequence[RawEvent]) -> Sequence[RawEvent]:
    # An ancestor that already exists is shared if both agree as far as they overlap.
    session = segment[0].session
    known = dict(transaction.execute(SQL["event_hashes"], (session, segment[-1].seq)).fetchall())
    if any(known.get(line.seq, line.hash) != line.hash for line in segment):
        raise SessionExists(f"another session already has the id {session!r} of this session's ancestor")
    rest = [line for line in segment if line.seq not in known]
    is_live = transaction.execute(SQL["find_session"], (session,)).fetchone() is not None
    if rest and is_live:
        raise SessionExists(f"the ancestor {session!r} exists here, but has fewer events than the archive")
    return rest


def _insert_tombstone(transaction: Transaction, segment: Sequence[RawEvent], now_ms: int) -> None:
    first, last = segment[0], segment[-1]
    event = decode_event(first.body)
    parent = parent_columns(getattr(event, "parent", None))
    columns = (
        first.session,
        None,
        now_ms,
        "imported as the beginning of a fork",
        last.seq,
        last.hash,
        last.seq,
    )
    transaction.execute(SQL["write_tombstone"], (*columns, *parent))


def _insert_events(transaction: Transaction, lines: Sequence[RawEvent]) -> None:
    transaction.executemany(
        SQL["append_event"], [(line.session, line.seq, line.at_ms, line.hash, line.body) for line in lines]
    )


def _record_arrival(
    transaction: Transaction,
    arrival: Arrival,
    session: SessionId,
    recorded: list[RecordedEvent],
    now_ms: int,
    signer: Signer,
) -> None:
    old_name = summarize(session, recorded).summary.name
    name = _free_name(transaction, old_name) if old_name is not None else None
    events = arrival_events(recorded, arrival, old_name=old_name, name=name, signer=signer)
    entries = [encode_entry(event, bytes) for event in events]
    last = recorded[-1]
    added = chain_entries(session, entries, at_ms=now_ms, seq=last.seq, previous=last.hash)
    append_records(transaction, added, entries)
    state = summarize(session, [*recorded, *added])
    line = state.summary
    (rank,) = transaction.execute(SQL["rank_of"], (session, added[-1].seq)).fetchone()
    columns = (session, line.name, line.folder, rank, *parent_columns(line.parent))
    transaction.execute(SQL["insert_session"], (*columns, encode(state)))


def _free_name(transaction: Transaction, given: str) -> str | None:
    """The name in its stored form; None if it is invalid or taken."""
    try:
        name = alias(given)
    except InvalidName:
        return None
    is_taken = any(
        transaction.execute(SQL[query], (name,)).fetchone() for query in ("session_named", "find_session")
    )
    return None if is_taken else name
