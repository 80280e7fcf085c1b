"""Upkeep: what a person asks of the store as a whole: check it, and make derived things anew."""

import sqlite3
from collections.abc import Sequence

import holdfast.store.sqlite.index as index
import holdfast.store.sqlite.search as search
from holdfast.core import SessionId, check_session_id
from holdfast.store.recovery.inspect import Inspection, inspect
from holdfast.store.sqlite.store import SqliteStore


async def verify(store: SqliteStore, session: SessionId) -> Inspection:
    """Check a session's chain, event by event. Raises SessionNotFound."""
    key = check_session_id(session)
    found = await _checked(store, key)
    if not found.is_sound and await store.reading(_is_derived_damaged):
        await rebuild_index(store)
        found = await _checked(store, key)
    return found


async def verify_all(store: SqliteStore) -> Sequence[Inspection]:
    """Check every session, newest first; those too that a damaged list has lost."""
    if await store.reading(_is_derived_damaged):
        await rebuild_index(store)
    return [await _checked(store, line.id) for line in await store.sessions()]


async def rebuild_index(store: SqliteStore) -> int:
    """Make the list of sessions anew from the journals, and have the next search do the same; how many sessions there are."""
    await store.reading(lambda _: search.discard(store.home.search))
    return await store.writing(index.rebuild)


async def _checked(store: SqliteStore, session: SessionId) -> Inspection:
    found, _ = await store.reading(lambda connection: inspect(connection, session))
    if not found.is_sound:
        await store.writing(lambda transaction: index.mark_damaged(transaction, session))
    return found


def _is_derived_damaged(connection: sqlite3.Connection) -> bool:
    """Whether events cannot be found by their places, or sessions by the list, though they are there."""
    (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    return found != "ok" or bool(index.strayed(connection))
