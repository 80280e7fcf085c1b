"""Exchange: a session goes out as one portable file, and one that comes in is checked, claimed and disarmed."""

import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from holdfast.core import EscalationId, GrantId, SessionId, check_session_id, encode
from holdfast.core.errors import InvalidInput, InvalidName, JournalDamaged, SessionExists
from holdfast.core.events import (
    AnyEvent,
    CallIntended,
    EscalationAnswered,
    EscalationExpired,
    GrantGiven,
    GrantRevoked,
    Noted,
    RecordedEvent,
    SessionReconfigured,
    SessionRenamed,
    decode_event,
)
from holdfast.store.archive.format import Manifest, Portable, pack, segments
from holdfast.store.blobs.store import Blobs, mentioned
from holdfast.store.home import Home, sync_folder
from holdfast.store.recovery.inspect import Line, inspect, read_lines
from holdfast.store.sqlite.database import SQL
from holdfast.store.sqlite.names import alias
from holdfast.store.sqlite.rows import append_records, chained, columns_of, encode_entry, read_tally
from holdfast.store.sqlite.store import SqliteStore
from holdfast.store.sqlite.transaction import Transaction
from holdfast.store.summary import summarize


async def export_session(store: SqliteStore, session: SessionId, path: Path, *, now_ms: int) -> Manifest:
    """Write a session into one portable file, a damaged one as far as it can be read. Raises InvalidInput."""
    key = check_session_id(session)
    if os.path.lexists(path):
        raise InvalidInput(f"{str(path)!r} exists already", hint="choose another file, or remove it first")
    return await store.reading(lambda connection: _export(connection, store.blobs, key, path, now_ms))


async def import_session(store: SqliteStore, path: Path, *, now_ms: int) -> SessionId:
    """Take in a portable file. Raises InvalidInput, JournalDamaged where it was tampered with, SessionExists."""
    file = await store.reading(lambda _: Portable(path))
    try:
        manifest, lines, events = await store.reading(lambda _: file.journal())
        for digest in await store.reading(lambda _: file.digests()):
            await store.put_blob(await store.reading(partial(_content, file, digest)))
    finally:
        file.close()
    await store.writing(lambda transaction: _arrive(transaction, store.home, lines, events, now_ms))
    return manifest.session


def _content(file: Portable, digest: str, _: sqlite3.Connection) -> bytes:
    return file.content(digest)


def _export(
    connection: sqlite3.Connection, blobs: Blobs, session: SessionId, path: Path, now_ms: int
) -> Manifest:
    found, readable = inspect(connection, session)
    legible = {one.seq for one in readable}
    lines = [line for line in read_lines(connection, session) if line.seq in legible]
    manifest = Manifest(
        session=session,
        events=lines[-1].seq if lines else 0,
        last_hash=lines[-1].hash.hex() if lines else "",
        exported_ms=now_ms,
        name=read_tally(connection, session).summary.name,
        problems=found.problems,
    )
    digests = mentioned(connection, blobs, (line.body for line in lines))
    draft = path.with_name(f".holdfast-{secrets.token_hex(8)}")
    try:
        descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w+b") as file:
            os.fchmod(descriptor, 0o600)
            manifest = pack(file, manifest, lines, _contents(connection, blobs, digests))
            file.flush()
            os.fsync(descriptor)
        _put_in_place(draft, path)
        sync_folder(path.parent)
    except OSError as problem:
        raise InvalidInput(
            f"{str(path)!r} cannot be written: {problem.strerror}", hint="choose another place with -o"
        ) from problem
    finally:
        with suppress(OSError):
            draft.unlink()
    return manifest


def _contents(
    connection: sqlite3.Connection, blobs: Blobs, digests: Iterable[str]
) -> Iterator[tuple[str, bytes | None]]:
    for digest in sorted(digests):
        try:
            yield digest, blobs.read(connection, digest)
        except JournalDamaged:  # the journal goes out all the same
            yield digest, None


def _put_in_place(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)  # unlike a rename, never over a file that came in the meantime
    except PermissionError:  # what file systems of memory sticks say, which know no second name of a file
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        draft.replace(path)


def _arrive(
    transaction: Transaction, home: Home, lines: Sequence[Line], events: Sequence[AnyEvent], now_ms: int
) -> None:
    *ancestors, own = segments(lines)
    session = own[0].session
    if transaction.execute(SQL["find_session"], (session,)).fetchone():
        raise SessionExists(
            f"there is a session {session!r} already", hint="delete it first to import it anew"
        )
    if transaction.execute(SQL["is_taken"], (session,)).fetchone():
        raise SessionExists(
            f"{session!r} was deleted, but forks of it stand on its beginning",
            hint="go on with one of them, or export and delete them first",
        )
    missing = [_missing(transaction, segment) for segment in ancestors]
    for segment, rest in zip(ancestors, missing, strict=True):
        _insert(transaction, rest)
        if rest:
            _keep_hidden(transaction, segment, now_ms)
    _insert(transaction, own)
    recorded = [
        RecordedEvent(session=line.session, seq=line.seq, at_ms=line.at_ms, event=event, hash=line.hash)
        for line, event in zip(lines, events, strict=True)
    ]
    _settle(transaction, home, session, recorded, now_ms)


def _missing(transaction: Transaction, segment: Sequence[Line]) -> Sequence[Line]:
    # An ancestor that is here already is shared, if it is the same one as far as both go.
    session = segment[0].session
    known = dict(transaction.execute(SQL["event_hashes"], (session, segment[-1].seq)).fetchall())
    if any(known.get(line.seq, line.hash) != line.hash for line in segment):
        raise SessionExists(f"another session has the id {session!r} of an ancestor of this one")
    rest = [line for line in segment if line.seq not in known]
    is_live = transaction.execute(SQL["find_session"], (session,)).fetchone() is not None
    if rest and is_live:
        raise SessionExists(f"the ancestor {session!r} is here, but does not reach as far")
    return rest


def _keep_hidden(transaction: Transaction, segment: Sequence[Line], now_ms: int) -> None:
    first, last = segment[0], segment[-1]
    event = decode_event(first.body)
    place = columns_of(getattr(event, "parent", None))
    grave = (
        first.session,
        None,
        now_ms,
        "imported as the beginning of a fork",
        last.seq,
        last.hash,
        last.seq,
    )
    transaction.execute(SQL["bury"], (*grave, *place))


def _insert(transaction: Transaction, lines: Sequence[Line]) -> None:
    transaction.executemany(
        SQL["append_event"], [(line.session, line.seq, line.at_ms, line.hash, line.body) for line in lines]
    )


def _settle(
    transaction: Transaction, home: Home, session: SessionId, recorded: list[RecordedEvent], now_ms: int
) -> None:
    """Record the arrival: what somebody else allowed, and where they worked, does not hold here."""
    tally = summarize(session, recorded)
    arrival: list[AnyEvent] = [GrantRevoked(grant=grant) for grant in _grants(one.event for one in recorded)]
    arrival += [
        EscalationExpired(escalation=id, reason="the yes to it was given on another home")
        for id in _approved(one.event for one in recorded)
    ]
    arrival.append(SessionReconfigured(workspace=str(home.workspace(session))))
    given = tally.summary.name
    kept = _name_here(transaction, given) if given is not None else None
    if kept != given:
        arrival.append(SessionRenamed(name=kept))
    arrival.append(Noted(code="imported", text="imported from a file; its grants were revoked"))
    entries = [encode_entry(event, bytes) for event in arrival]
    last = recorded[-1]
    added = chained(session, entries, at_ms=now_ms, seq=last.seq, previous=last.hash)
    append_records(transaction, added, entries)
    tally = summarize(session, [*recorded, *added])
    line = tally.summary
    (rank,) = transaction.execute(SQL["rank_of"], (session, added[-1].seq)).fetchone()
    place = (session, line.name, line.folder, rank, *columns_of(line.parent))
    transaction.execute(SQL["claim_session"], (*place, encode(tally)))


def _name_here(transaction: Transaction, given: str) -> str | None:
    """The name in the form in which names are kept; None where it may be none, or is another's here."""
    try:
        kept = alias(given)
    except InvalidName:
        return None
    is_taken = any(
        transaction.execute(SQL[query], (kept,)).fetchone() for query in ("session_named", "find_session")
    )
    return None if is_taken else kept


def _grants(events: Iterator[AnyEvent]) -> list[GrantId]:
    standing: dict[GrantId, None] = {}
    for event in events:
        if isinstance(event, GrantGiven):
            standing[event.grant.id] = None
        elif isinstance(event, GrantRevoked):
            standing.pop(event.grant, None)
    return list(standing)


def _approved(events: Iterator[AnyEvent]) -> list[EscalationId]:
    """Escalations with a yes that no call was made by yet."""
    unused: dict[EscalationId, None] = {}
    for event in events:
        if isinstance(event, EscalationAnswered) and event.response.verdict == "approve":
            unused[event.escalation] = None
        elif isinstance(event, CallIntended) and event.escalation is not None:
            unused.pop(event.escalation, None)
    return list(unused)
