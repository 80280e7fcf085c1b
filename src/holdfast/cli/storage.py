"""The store as commands use it: opened for a moment, without a runtime around it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from holdfast.core import SessionId, SystemClock
from holdfast.core.errors import SessionNotFound
from holdfast.store import EmbeddedStore, Home


@asynccontextmanager
async def opened_store() -> AsyncIterator[tuple[Home, EmbeddedStore]]:
    """The home and its store, closed again at the end of the block."""
    home = Home.default()
    home.prepare()
    store = await EmbeddedStore.start(home, clock=SystemClock())
    try:
        yield home, store
    finally:
        await store.close()


async def chosen_session(store: EmbeddedStore, reference: str | None) -> SessionId:
    """The session a person means: by id, prefix or name, else the newest."""
    if reference is not None:
        return await store.find(reference)
    newest = await store.sessions(limit=1)
    if not newest:
        raise SessionNotFound("there are no sessions yet", hint="start one with: holdfast")
    return newest[0].id
