"""Opening the store for one command, without a runtime."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

from holdfast.cli.redaction import LazyRedactor
from holdfast.cli.terminal.console import Console, MessageOutput
from holdfast.core import SessionId, SystemClock
from holdfast.core.errors import SessionNotFound, StoreUnavailable
from holdfast.store import Home, Store
from holdfast.store import open_store as open_backend


@asynccontextmanager
async def open_store(
    *, only_reads: bool = False, url: str | None = None
) -> AsyncIterator[tuple[Home, Store]]:
    """Open Holdfast's data directory and its store for the block. Repairs that the store made are printed once.

    `url` names a store in PostgreSQL; without it `$HOLDFAST_STORE` does, and an empty one names the data directory. With `only_reads`, a directory that is read-only or on a full disk is read through a temporary copy of its database.
    """
    home = Home.default()
    console = Console()
    with ExitStack() as stack:
        place = home
        if only_reads and (problem := _write_problem(home)):
            place = stack.enter_context(_readable_copy(home, problem))
            console.say(f"note: {str(home.root)!r} is {problem}; it can be read and exported", "ask")
        async with _opened(home, place, console, url) as store:
            yield home, store


@asynccontextmanager
async def _opened(home: Home, place: Home, console: Console, url: str | None) -> AsyncIterator[Store]:
    place.prepare()
    store = await open_backend(place, clock=SystemClock(), redact=LazyRedactor(home.root), url=url)
    printed = print_store_notices(store, console)
    try:
        yield store
    finally:
        print_store_notices(store, console, after=printed)
        await store.close()


_LEAST_FREE_BYTES = 1 << 20
"""SQLite needs a few hundred kilobytes to open a database, even for reading."""


def _write_problem(home: Home) -> str:
    """Why the data directory cannot be written, in words; empty if it can, or if there is nothing to read."""
    try:
        found = os.statvfs(home.database)
    except OSError:
        return ""
    if found.f_flag & os.ST_RDONLY or not os.access(home.root, os.W_OK):
        return "read-only"
    return "on a full disk" if found.f_bavail * found.f_frsize < _LEAST_FREE_BYTES else ""


@contextmanager
def _readable_copy(home: Home, problem_of_home: str) -> Iterator[Home]:
    """A temporary home with a copy of the database and the blobs of this one."""
    with tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
        copy = Home(Path(folder))
        try:
            for file in home.root.glob(f"{home.database.name}*"):
                if not file.name.endswith("-shm"):  # the state of running processes
                    shutil.copyfile(file, copy.root / file.name)
        except OSError as problem:
            raise StoreUnavailable(
                f"{str(home.root)!r} is {problem_of_home}, and its database cannot be copied: {problem.strerror}",
                hint="free space in the temporary folder, or set TMPDIR to another one",
            ) from problem
        if home.blobs.is_dir():
            copy.blobs.symlink_to(home.blobs)
        yield copy


def print_store_notices(store: Store, output: MessageOutput, *, after: int = 0) -> int:
    """Print what the store had to repair, one line each. Returns the number of notices so far."""
    notices = store.notices
    for notice in notices[after:]:
        output.say(f"note: {notice}", "ask")
    return len(notices)


async def resolve_session(store: Store, reference: str | None) -> SessionId:
    """The session with this id, prefix, last four characters or name; the newest one without a reference."""
    if reference is not None:
        return await store.find(reference)
    newest = await store.sessions(limit=1)
    if not newest:
        raise SessionNotFound("there are no sessions yet", hint="start one with: holdfast")
    return newest[0].id
