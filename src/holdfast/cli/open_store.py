"""The store as commands use it: opened for a moment, without a runtime around it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from holdfast.cli.redaction import LazyRedactor
from holdfast.cli.terminal.console import Console, Output
from holdfast.core import SessionId, SystemClock
from holdfast.core.errors import SessionNotFound
from holdfast.store import Home, Store
from holdfast.store import open_store as open_backend


@asynccontextmanager
async def open_store() -> AsyncIterator[tuple[Home, Store]]:
    """The home and its store, closed again at the end of the block; what was mended is said once."""
    home = Home.default()
    home.prepare()
    store = await open_backend(home, clock=SystemClock(), redact=LazyRedactor(home.root))
    console = Console()
    told = say_notices(store, console)
    try:
        yield home, store
    finally:
        say_notices(store, console, after=told)
        await store.close()


def say_notices(store: Store, teller: Output, *, after: int = 0) -> int:
    """Tell the person what the store had to make anew or to save, a line each; how many there are so far."""
    notices = store.notices
    for notice in notices[after:]:
        teller.say(f"note: {notice}", "ask")
    return len(notices)


async def chosen_session(store: Store, reference: str | None) -> SessionId:
    """The session a person means: by id, prefix or name, else the newest."""
    if reference is not None:
        return await store.find(reference)
    newest = await store.sessions(limit=1)
    if not newest:
        raise SessionNotFound("there are no sessions yet", hint="start one with: holdfast")
    return newest[0].id
