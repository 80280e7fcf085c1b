"""Removing sessions: what goes, what stays because others stand on it, and the sign that it went on purpose."""

import sqlite3
from contextlib import suppress
from functools import partial

import holdfast.store.sqlite.search as search
from holdfast.core import SessionId
from holdfast.store.blobs.store import Blobs, digests_in, mentioned
from holdfast.store.contract import SessionSummary
from holdfast.store.home import Home
from holdfast.store.rmtree import remove_tree
from holdfast.store.sqlite.database import SQL
from holdfast.store.sqlite.rows import columns_of
from holdfast.store.sqlite.transaction import Transaction

FRESH_MS = 60 * 60 * 1000
"""So long a content that nothing mentions is left alone: who put it may be about to mention it."""


def write_tombstone(
    transaction: Transaction, line: SessionSummary, *, reason: str, now_ms: int
) -> frozenset[str]:
    """Remove a session's rows and leave a tombstone; the contents it mentioned, which may now be nobody's."""
    last = transaction.execute(SQL["last_event"], (line.id,)).fetchone()
    transaction.execute(SQL["delete_session"], (line.id,))
    transaction.execute(SQL["delete_lease"], (line.id,))
    grave = (line.id, line.name, now_ms, reason, line.events, last[1] if last else b"", line.events)
    transaction.execute(SQL["write_tombstone"], (*grave, *columns_of(line.parent)))
    digests: set[str] = set()
    session: SessionId | None = line.id
    # A buried session keeps the events that forks stand on. When the last of those goes, so do its ancestors' parts.
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
    """Remove what lies in files: the session's folder, the signs of its files, and its words in the search."""
    _remove_own(home, session)
    search.discard(home.search)


def remove_leftovers(home: Home, connection: sqlite3.Connection) -> None:
    """Remove the files of sessions that are buried: a crash or a failing disk may have left some."""
    for (session,) in connection.execute(SQL["buried_sessions"]):
        _remove_own(home, session)


def _remove_own(home: Home, session: SessionId) -> None:
    with suppress(OSError):
        remove_tree(home.session_folder(session))
    with suppress(OSError):
        home.signs(session).unlink()


def remove_strays(blobs: Blobs, now_ms: int, connection: sqlite3.Connection) -> None:
    """Remove files of contents that have no row: whoever wrote them was killed before, and nothing can mention them."""
    for file in blobs.folder.glob("??/" + "[0-9a-f]" * 64):
        is_known = connection.execute(SQL["get_blob"], (bytes.fromhex(file.name),)).fetchone() is not None
        if not is_known and file.stat().st_mtime * 1000 < now_ms - FRESH_MS:
            file.unlink(missing_ok=True)


def settled_contents(connection: sqlite3.Connection, *, now_ms: int) -> frozenset[str]:
    """Every content whose event would be there by now, if there is one."""
    rows = connection.execute(SQL["settled_blobs"], (now_ms - FRESH_MS,))
    return frozenset(digest for (digest,) in rows)


def find_orphans(blobs: Blobs, digests: frozenset[str], connection: sqlite3.Connection) -> frozenset[str]:
    """Those of the contents, and of what they mention, that nothing left mentions. Looks through every event that is left."""
    candidates = mentioned(connection, blobs, [" ".join(digests).encode()])
    if not candidates:
        return frozenset()
    bodies = (body for (body,) in connection.execute(SQL["all_bodies"]))
    return frozenset(candidates - mentioned(connection, blobs, bodies))


def sweep(blobs: Blobs, orphans: frozenset[str], now_ms: int, transaction: Transaction) -> None:
    """Remove contents that nothing mentions."""
    for digest in orphans:
        row = transaction.execute(SQL["drop_blob"], (bytes.fromhex(digest), now_ms - FRESH_MS)).fetchone()
        if row is not None and row[0]:
            transaction.after_commit.append(partial(blobs.path(digest).unlink, missing_ok=True))
