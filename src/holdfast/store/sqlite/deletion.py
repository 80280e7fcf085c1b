"""Deletion of sessions. Events that forks need stay, and a tombstone records that the deletion was intended."""

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial

import holdfast.store.sqlite.database as database
import holdfast.store.sqlite.usage as usage
from holdfast.core import SessionId
from holdfast.store.blobs.references import digests_in
from holdfast.store.blobs.store import Blobs, referenced_blobs
from holdfast.store.contract import SessionSummary
from holdfast.store.files.session_files import remove_session_files
from holdfast.store.history import parent_columns
from holdfast.store.home import Home
from holdfast.store.sqlite.database import SQL
from holdfast.store.sqlite.derived_file import discard
from holdfast.store.sqlite.rows import Connection
from holdfast.store.sqlite.transaction import Transaction

ORPHAN_GRACE_MS = 60 * 60 * 1000
"""An unreferenced blob is kept this long, because the event that refers to it may be about to be written."""
_QUICKLY_REBUILT_BYTES = 64_000_000
"""A file of this size is rebuilt in about a second, a small part of the time that a writer waits for the lock."""


def write_tombstone(
    transaction: Transaction, line: SessionSummary, *, reason: str, now_ms: int
) -> frozenset[str]:
    """Delete a session's rows and write a tombstone. Returns the blobs that it referred to."""
    last = transaction.execute(SQL["last_event"], (line.id,)).fetchone()
    transaction.execute(SQL["delete_session"], (line.id,))
    transaction.execute(SQL["delete_lease"], (line.id,))
    transaction.execute(SQL["delete_shares"], (line.id,))
    tombstone = (line.id, line.name, now_ms, reason, line.events, last[1] if last else b"", line.events)
    transaction.execute(SQL["write_tombstone"], (*tombstone, *parent_columns(line.parent)))
    digests: set[str] = set()
    session: SessionId | None = line.id
    # A deleted session keeps the events that its forks share. When the last fork is deleted, so are these.
    while session is not None:
        row = transaction.execute(SQL["tombstone_of"], (session,)).fetchone()
        if row is None:
            break
        kept, parent_id = row
        (needed,) = transaction.execute(SQL["forks_of"], (session,)).fetchone()
        for (body,) in transaction.execute(SQL["bodies_above"], (session, needed or 0)):
            digests |= digests_in(body)
        transaction.execute(SQL["delete_events"], (session, needed or 0))
        transaction.execute(SQL["shrink_tombstone"], (min(kept, needed or 0), session))
        session = None if needed else parent_id
    return frozenset(digests)


def remove_files(home: Home, session: SessionId) -> None:
    """Remove a session's files and what is derived from it: its folder, what a team's program recorded, its stat cache, the search
    index and its usage."""
    remove_session_files(home, session)
    # The whole file: words that are removed from a full-text index stay in it.
    discard(home.search)
    usage.forget(home.usage, session)


def remove_leftovers(home: Home, connection: sqlite3.Connection) -> None:
    """Remove files of deleted sessions that a crash or a failing disk left behind."""
    for (session,) in connection.execute(SQL["deleted_sessions"]):
        remove_session_files(home, session)


def erase_traces(home: Home, is_idle: Callable[[Connection], bool]) -> None:
    """Erase what deletion leaves in the database file and in its log.

    Both the log and the unused part of a page keep copies of rows that SQLite has moved: `secure_delete` erases a row where it is, and
    not where it was. Rebuilding the file holds up every writer, so a large file is rebuilt only if no session is open anywhere. While
    another process reads, its part of the log stays.
    """
    with suppress(sqlite3.Error), closing(database.connect(home.database)) as connection:
        if home.database.stat().st_size <= _QUICKLY_REBUILT_BYTES or is_idle(connection):
            with suppress(sqlite3.Error):  # locked, or no space for the copy: the log is emptied all the same
                connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def remove_strays(blobs: Blobs, now_ms: int, connection: sqlite3.Connection) -> None:
    """Remove blob files without a row: their writer was killed, and nothing can refer to them."""
    for file in blobs.folder.glob("??/" + "[0-9a-f]" * 64):
        is_known = connection.execute(SQL["get_blob"], (bytes.fromhex(file.name),)).fetchone() is not None
        if not is_known and file.stat().st_mtime * 1000 < now_ms - ORPHAN_GRACE_MS:
            file.unlink(missing_ok=True)


def settled_blobs(connection: sqlite3.Connection, *, now_ms: int) -> frozenset[str]:
    """List the blobs that are old enough for the event that refers to them to exist."""
    rows = connection.execute(SQL["settled_blobs"], (now_ms - ORPHAN_GRACE_MS,))
    return frozenset(digest for (digest,) in rows)


def find_orphans(blobs: Blobs, digests: frozenset[str], connection: sqlite3.Connection) -> frozenset[str]:
    """Find those of the blobs, and of the blobs they refer to, that nothing refers to. Reads every event."""
    candidates = referenced_blobs(connection, blobs, [" ".join(digests).encode()])
    if not candidates:
        return frozenset()
    bodies = (body for (body,) in connection.execute(SQL["all_bodies"]))
    return frozenset(candidates - referenced_blobs(connection, blobs, bodies))


def sweep(
    blobs: Blobs,
    orphans: frozenset[str],
    since_ms: int,
    is_idle: Callable[[Connection], bool],
    transaction: Transaction,
) -> None:
    """Delete blobs that were unreferenced at a time. One that was stored again may be about to be referred to: it stays for the
    grace period or, if no session is open, only if it was stored after that time.
    """
    after_ms = since_ms - 1 if is_idle(transaction) else since_ms - ORPHAN_GRACE_MS
    for digest in orphans:
        row = transaction.execute(SQL["drop_blob"], (bytes.fromhex(digest), after_ms)).fetchone()
        if row is not None and row[0]:
            transaction.after_commit.append(partial(blobs.path(digest).unlink, missing_ok=True))
