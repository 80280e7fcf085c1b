"""Stores the contents of files for a restore point: small files whole, large files in chunks, each content once.

Several threads read and hash, because file operations and hashing release the GIL.
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
from holdfast.world.restore_points.manifest import TreeEntry
from holdfast.world.restore_points.scan import ScanEntry

THREADS = 4
SINGLE_THREAD_LIMIT = 16
"""Up to this many items use a single thread."""

_Thing = TypeVar("_Thing")
_Result = TypeVar("_Result")


async def map_in_threads(
    things: Sequence[_Thing], work: Callable[[_Thing], _Result]
) -> list[tuple[_Thing, _Result]]:
    """Apply `work` to each thing; return the pairs in no order. At the first error or on cancellation, all threads stop.

    INVARIANT: when it returns or raises, no thread is still working.
    """
    threads = THREADS if len(things) > SINGLE_THREAD_LIMIT else 1
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


OpenIngest = Callable[[], AbstractAsyncContextManager[BlobIngest]]
"""Opens the destination of contents: the store, or nothing if only hashes are needed."""

CHUNK_BYTES = 4 << 20
"""Larger files are stored in chunks: an append costs only the last chunk, and a file never has to fit into memory."""
BATCH_FILES = 4096
"""This many files are made durable together."""


class SnapshotWriter:
    """Turns scanned entries into tree entries and stores their contents."""

    def __init__(self, root: BeneathRoot, ingest: OpenIngest) -> None:
        self._files = PlainFiles(root, allows_hard_links=True)
        self._root = root
        self._ingest = ingest

    async def entries(self, scanned: Sequence[ScanEntry]) -> dict[ScanEntry, TreeEntry]:
        """The tree entry of each scanned entry. Files that disappeared in the meantime are skipped."""
        entries: dict[ScanEntry, TreeEntry] = {}
        for start in range(0, len(scanned), BATCH_FILES):
            async with self._ingest() as ingest:
                found = await map_in_threads(
                    scanned[start : start + BATCH_FILES], partial(self._entry, ingest=ingest)
                )
            entries.update((scanned, entry) for scanned, entry in found if entry is not None)
        return entries

    def _entry(self, scanned: ScanEntry, ingest: BlobIngest) -> TreeEntry | None:
        path, mode = scanned.path, scanned.mode
        permissions = mode & PERMISSIONS
        try:
            if stat.S_ISDIR(mode):
                return TreeEntry(path=path, kind="folder", mode=permissions)
            if stat.S_ISLNK(mode):
                return TreeEntry(path=path, kind="link", target=self._target(path))
            if stat.S_ISREG(mode):
                return self._file(TreeEntry(path=path, kind="file", mode=permissions), ingest)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, PathRefused):  # unreadable
            if stat.S_ISREG(mode):
                return unkept(scanned)
        return TreeEntry(path=path, kind="other")

    def _file(self, entry: TreeEntry, ingest: BlobIngest) -> TreeEntry:
        with self._files.opened(entry.path, os.O_RDONLY) as opened:
            length = os.fstat(opened).st_size
            if length <= CHUNK_BYTES:
                kept = ingest.take(opened, 0, length)
                return structs.replace(entry, size=kept.size, fingerprint=kept.digest)
            whole = hashlib.sha256()
            size, chunks = 0, []
            # Only up to its size when it was opened, because another process may append faster than we read.
            while (kept := ingest.take(opened, size, min(CHUNK_BYTES, length - size), whole=whole)).size:
                size += kept.size
                chunks.append(kept.digest)
            return structs.replace(entry, size=size, fingerprint=whole.hexdigest(), chunks=tuple(chunks))

    def _target(self, path: str) -> str:
        parent, name = parent_and_name(path)
        with self._root.folder(parent) as folder:
            return os.readlink(name, dir_fd=folder)


def unkept(scanned: ScanEntry) -> TreeEntry:
    """The entry of a file whose content is not stored."""
    _, size, modified_ns, *_ = scanned.signature
    return TreeEntry(
        path=scanned.path,
        kind="unkept",
        mode=scanned.mode & PERMISSIONS,
        size=size,
        fingerprint=f"unkept:{size}:{modified_ns}",
    )


class _HashOnlyIngest:
    """Hashes contents and stores nothing."""

    def take(self, descriptor: int, start: int, length: int, *, whole: Hasher | None = None) -> BlobInfo:
        content = read_span(descriptor, start, length)
        if whole is not None:
            whole.update(content)
        return BlobInfo(digest=digest_bytes(content), size=len(content))


@asynccontextmanager
async def discard_contents() -> AsyncIterator[BlobIngest]:
    """A destination that only hashes, to find what changed without storing it."""
    yield _HashOnlyIngest()
