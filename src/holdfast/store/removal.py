"""Removing sessions: what goes, what stays because others stand on it, and the sign that it went on purpose."""

import shutil

from holdfast.core import SessionId
from holdfast.store.blobs import Blobs
from holdfast.store.contract import SessionSummary
from holdfast.store.database import SQL
from holdfast.store.home import Home
from holdfast.store.writer import Transaction


def bury(transaction: Transaction, line: SessionSummary, *, reason: str, now_ms: int) -> list[str]:
    """Remove a session's rows and leave a tombstone; the names of contents that nothing mentions any more."""
    _, last_hash = transaction.execute(SQL["last_event"], (line.id,)).fetchone()
    parent = (line.parent.session, line.parent.seq) if line.parent else (None, None)
    transaction.execute(SQL["delete_session"], (line.id,))
    transaction.execute(SQL["delete_lease"], (line.id,))
    transaction.execute(
        SQL["bury"], (line.id, line.name, now_ms, reason, line.events, last_hash, line.events, *parent)
    )
    _let_go(transaction, line.id)
    return []


def remove(home: Home, blobs: Blobs, session: SessionId, digests: list[str]) -> None:
    """Remove what lies in files: the session's folder, and large contents that nothing mentions any more."""
    shutil.rmtree(home.session_folder(session), ignore_errors=True)
    for digest in digests:
        blobs.path(digest).unlink(missing_ok=True)


def _let_go(transaction: Transaction, session: str | None) -> None:
    # A buried session keeps the events that forks stand on. When the last of those goes, so do its ancestors' parts.
    while session is not None:
        row = transaction.execute(SQL["tombstone_of"], (session,)).fetchone()
        if row is None:
            return
        kept, parent = row
        (needed,) = transaction.execute(SQL["forks_of"], (session,)).fetchone()
        transaction.execute(SQL["delete_events"], (session, needed or 0))
        transaction.execute(SQL["shrink_tombstone"], (min(kept, needed or 0), session))
        session = None if needed else parent
