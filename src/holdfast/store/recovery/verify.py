"""Verification of journals, and rebuilding what is derived from them."""

import sqlite3
from collections.abc import Sequence
from functools import partial

import holdfast.store.sqlite.index as index
from holdfast.core import SessionId, check_session_id
from holdfast.store.contract import Inspection
from holdfast.store.recovery.inspect import inspect
from holdfast.store.sqlite.blob_store import SqliteBlobStore
from holdfast.store.sqlite.derived_file import discard
from holdfast.store.sqlite.sessions import list_sessions


async def verify(store: SqliteBlobStore, session: SessionId) -> Inspection:
    """Check a session's hash chain, event by event. Raises SessionNotFound."""
    key = check_session_id(session)
    found = await _inspect(store, key)
    if not found.is_intact and await store.reading(_is_index_damaged):
        await rebuild_index(store)
        found = await _inspect(store, key)
    return found


async def verify_all(store: SqliteBlobStore) -> Sequence[Inspection]:
    """Check every session, newest first, including those that a damaged session list omits."""
    if await store.reading(_is_index_damaged):
        await rebuild_index(store)
    sessions = await store.reading(partial(list_sessions, limit=None, folder=None))
    return [await _inspect(store, line.id) for line in sessions]


async def rebuild_index(store: SqliteBlobStore) -> int:
    """Rebuild the session list from the journals, discard what else is derived, and return the number of sessions."""
    for file in (store.home.search, store.home.usage):
        await store.reading(lambda _, file=file: discard(file))  # type: ignore[misc]
    return await store.writing(index.rebuild)


async def _inspect(store: SqliteBlobStore, session: SessionId) -> Inspection:
    found, _ = await store.reading(lambda connection: inspect(connection, session))
    if not found.is_intact:
        await store.writing(lambda transaction: index.mark_damaged(transaction, session))
    return found


def _is_index_damaged(connection: sqlite3.Connection) -> bool:
    """Whether existing events or sessions cannot be found through the database's indexes or the session list."""
    (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    return found != "ok" or bool(index.unlisted_sessions(connection))
