"""Opening the store for one command, without a runtime."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from holdfast.cli.redaction import LazyRedactor
from holdfast.cli.terminal.console import Console, MessageOutput
from holdfast.core import SessionId, SystemClock
from holdfast.core.errors import SessionNotFound
from holdfast.store import Home, Store
from holdfast.store import open_store as open_backend


@asynccontextmanager
async def open_store() -> AsyncIterator[tuple[Home, Store]]:
    """Open Holdfast's data directory and its store for the block. Repairs that the store made are printed once."""
    home = Home.default()
    home.prepare()
    store = await open_backend(home, clock=SystemClock(), redact=LazyRedactor(home.root))
    console = Console()
    printed = print_store_notices(store, console)
    try:
        yield home, store
    finally:
        print_store_notices(store, console, after=printed)
        await store.close()


def print_store_notices(store: Store, output: MessageOutput, *, after: int = 0) -> int:
    """Print what the store had to repair, one line each. Returns the number of notices so far."""
    notices = store.notices
    for notice in notices[after:]:
        output.say(f"note: {notice}", "ask")
    return len(notices)


async def resolve_session(store: Store, reference: str | None) -> SessionId:
    """The session with this id, prefix or name; the newest one without a reference."""
    if reference is not None:
        return await store.find(reference)
    newest = await store.sessions(limit=1)
    if not newest:
        raise SessionNotFound("there are no sessions yet", hint="start one with: holdfast")
    return newest[0].id
