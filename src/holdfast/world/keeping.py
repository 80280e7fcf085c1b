"""Keeping the content of files as blobs: small ones whole, large ones in pieces, each once."""

import asyncio
import hashlib
import os
import stat
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from msgspec import structs

from holdfast.core import digest_bytes
from holdfast.core.errors import PathRefused
from holdfast.world.descent import Root
from holdfast.world.files import PERMISSIONS, PlainFiles
from holdfast.world.manifests import Entry, Tree
from holdfast.world.names import parent_and_name
from holdfast.world.scan import Look

Keep = Callable[[bytes], Awaitable[str]]
"""Stores a blob, durable when it returns, and answers with its SHA-256."""

CHUNK_BYTES = 4 << 20
"""A larger file is kept in pieces: appending to it costs its last piece, and it never has to fit into memory."""
BATCH_FILES = 64


class _Read(NamedTuple):
    entry: Entry
    blobs: tuple[bytes, ...] = ()


class Keeper:
    """Turns what was looked at into entries, handing each content that is new to `keep`."""

    def __init__(self, root: Root, keep: Keep) -> None:
        self._files = PlainFiles(root, allows_hard_links=True)
        self._root = root
        self._keep = keep
        self._kept: set[str] = set()

    def knows(self, tree: Tree) -> None:
        """These contents are kept already."""
        for entry in tree.values():
            self._kept.update(entry.chunks or (entry.fingerprint,))

    async def entries(self, looks: Sequence[Look]) -> dict[Look, Entry]:
        """The entry of each look, its content kept; what vanished meanwhile is left out."""
        entries: dict[Look, Entry] = {}
        for start in range(0, len(looks), BATCH_FILES):
            batch = looks[start : start + BATCH_FILES]
            reads = await asyncio.to_thread(self._read_all, batch)
            # All at once, so that a store which commits in groups has a group to commit.
            await asyncio.gather(*(self._keep_new(blob) for read in reads.values() for blob in read.blobs))
            for look, read in reads.items():
                is_large = read.entry.kind == "file" and read.entry.size > CHUNK_BYTES
                entries[look] = await self._in_pieces(read.entry) if is_large else read.entry
        return entries

    def _read_all(self, looks: Sequence[Look]) -> dict[Look, _Read]:
        reads = ((look, self._read(look)) for look in looks)
        return {look: read for look, read in reads if read is not None}

    def _read(self, look: Look) -> _Read | None:
        """The entry of one look; a large file has no content yet."""
        path, mode = look.path, look.mode
        permissions = mode & PERMISSIONS
        try:
            if stat.S_ISDIR(mode):
                return _Read(Entry(path=path, kind="folder", mode=permissions))
            if stat.S_ISLNK(mode):
                return _Read(Entry(path=path, kind="link", target=self._target(path)))
            if not stat.S_ISREG(mode):
                return _Read(Entry(path=path, kind="other"))
            file = Entry(path=path, kind="file", mode=permissions, size=look.size)
            if look.size > CHUNK_BYTES:
                return _Read(file)
            content = self._files.read(path)
            whole = structs.replace(file, size=len(content), fingerprint=digest_bytes(content))
            return _Read(whole, (content,))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, PathRefused):
            return _Read(Entry(path=path, kind="other"))

    async def _in_pieces(self, file: Entry) -> Entry:
        whole = hashlib.sha256()
        chunks: list[str] = []
        size = 0
        while piece := await asyncio.to_thread(self._piece, file.path, size):
            whole.update(piece)
            size += len(piece)
            chunks.append(await self._keep_new(piece))
        return structs.replace(file, size=size, fingerprint=whole.hexdigest(), chunks=tuple(chunks))

    def _piece(self, path: str, place: int) -> bytes:
        opened = self._root.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            return os.pread(opened, CHUNK_BYTES, place)
        finally:
            os.close(opened)

    def _target(self, path: str) -> str:
        parent, name = parent_and_name(path)
        with self._root.folder(parent) as folder:
            return os.readlink(name, dir_fd=folder)

    async def _keep_new(self, blob: bytes) -> str:
        digest = await asyncio.to_thread(digest_bytes, blob) if len(blob) > 1 << 16 else digest_bytes(blob)
        if digest not in self._kept:
            await self._keep(blob)
            self._kept.add(digest)
        return digest
