"""Keeping the content of files: small ones whole, large ones in pieces, each once. Several threads read and hash.

The same work on many things, spread over a few threads: reading, hashing and writing files let go of the interpreter.
"""

import asyncio
import hashlib
import os
import stat
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TypeVar

from msgspec import structs

from holdfast.core import digest_bytes
from holdfast.core.errors import PathRefused
from holdfast.store import BlobInfo, BlobIngest, Hasher, read_span
from holdfast.world.folder.files import PERMISSIONS, PlainFiles
from holdfast.world.paths.names import parent_and_name
from holdfast.world.paths.open_beneath import BeneathRoot
from holdfast.world.restore_points.manifest import Entry
from holdfast.world.restore_points.scan import ScanEntry

THREADS = 4
FEW = 16
"""So few are done by one thread."""

_Thing = TypeVar("_Thing")
_Result = TypeVar("_Result")


async def map_in_threads(
    things: Sequence[_Thing], work: Callable[[_Thing], _Result]
) -> list[tuple[_Thing, _Result]]:
    """Each thing with what became of it, in no order. At the first error, or when cancelled, all threads stop.

    INVARIANT: when it is over, however it ends, no thread works any more.
    """
    threads = THREADS if len(things) > FEW else 1
    is_over = threading.Event()

    def share(number: int) -> list[tuple[_Thing, _Result]]:
        done: list[tuple[_Thing, _Result]] = []
        try:
            for thing in things[number::threads]:
                if is_over.is_set():
                    break
                done.append((thing, work(thing)))
        except BaseException:
            is_over.set()
            raise
        return done

    running = asyncio.gather(
        *(asyncio.to_thread(share, number) for number in range(threads)), return_exceptions=True
    )
    try:
        shares = await asyncio.shield(running)
    except asyncio.CancelledError:
        is_over.set()
        await running
        raise
    for done in shares:
        if isinstance(done, BaseException):
            raise done
    return [pair for done in shares if not isinstance(done, BaseException) for pair in done]


OpenIntake = Callable[[], AbstractAsyncContextManager[BlobIngest]]
"""Where contents go: to the store, or nowhere when only their names are wanted."""

CHUNK_BYTES = 4 << 20
"""A larger file is kept in pieces: appending to it costs its last piece, and it never has to fit into memory."""
BATCH_FILES = 4096
"""So many files are made durable together."""


class SnapshotWriter:
    """Turns what was looked at into entries, handing each content to an intake."""

    def __init__(self, root: BeneathRoot, intake: OpenIntake) -> None:
        self._files = PlainFiles(root, allows_hard_links=True)
        self._root = root
        self._intake = intake

    async def entries(self, looks: Sequence[ScanEntry]) -> dict[ScanEntry, Entry]:
        """The entry of each look, its content kept; what vanished meanwhile is left out."""
        entries: dict[ScanEntry, Entry] = {}
        for start in range(0, len(looks), BATCH_FILES):
            async with self._intake() as intake:
                found = await map_in_threads(
                    looks[start : start + BATCH_FILES], partial(self._entry, intake=intake)
                )
            entries.update((look, entry) for look, entry in found if entry is not None)
        return entries

    def _entry(self, look: ScanEntry, intake: BlobIngest) -> Entry | None:
        path, mode = look.path, look.mode
        permissions = mode & PERMISSIONS
        try:
            if stat.S_ISDIR(mode):
                return Entry(path=path, kind="folder", mode=permissions)
            if stat.S_ISLNK(mode):
                return Entry(path=path, kind="link", target=self._target(path))
            if stat.S_ISREG(mode):
                return self._file(Entry(path=path, kind="file", mode=permissions), intake)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, PathRefused):  # what the system does not let us read
            if stat.S_ISREG(mode):
                return unkept(look)
        return Entry(path=path, kind="other")

    def _file(self, entry: Entry, intake: BlobIngest) -> Entry:
        with self._files.opened(entry.path, os.O_RDONLY) as opened:
            length = os.fstat(opened).st_size
            if length <= CHUNK_BYTES:
                kept = intake.take(opened, 0, length)
                return structs.replace(entry, size=kept.size, fingerprint=kept.digest)
            whole = hashlib.sha256()
            size, chunks = 0, []
            # As long as it was when it was opened: somebody may write to it faster than it can be read.
            while (kept := intake.take(opened, size, min(CHUNK_BYTES, length - size), whole=whole)).size:
                size += kept.size
                chunks.append(kept.digest)
            return structs.replace(entry, size=size, fingerprint=whole.hexdigest(), chunks=tuple(chunks))

    def _target(self, path: str) -> str:
        parent, name = parent_and_name(path)
        with self._root.folder(parent) as folder:
            return os.readlink(name, dir_fd=folder)


def unkept(look: ScanEntry) -> Entry:
    """The entry of a file that is not read."""
    _, size, modified_ns, *_ = look.sign
    return Entry(
        path=look.path,
        kind="unkept",
        mode=look.mode & PERMISSIONS,
        size=size,
        fingerprint=f"unkept:{size}:{modified_ns}",
    )


class _Measure:
    """An intake that keeps nothing: it only tells the names."""

    def take(self, descriptor: int, start: int, length: int, *, whole: Hasher | None = None) -> BlobInfo:
        content = read_span(descriptor, start, length)
        if whole is not None:
            whole.update(content)
        return BlobInfo(digest=digest_bytes(content), size=len(content))


@asynccontextmanager
async def only_names() -> AsyncIterator[BlobIngest]:
    """An intake for whoever wants to know what is there and to keep none of it."""
    yield _Measure()
