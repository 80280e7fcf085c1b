"""Changes a folder to match a tree, by descriptor. Only entries that differ are touched."""

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

from holdfast.core.errors import JournalDamaged, PathRefused
from holdfast.store import BlobSource, BlobStore
from holdfast.world.folder.files import PlainFiles
from holdfast.world.paths.names import parent_and_name
from holdfast.world.paths.open_beneath import BeneathRoot, SymlinkEncountered
from holdfast.world.restore_points.manifest import Delta, Tree, TreeEntry
from holdfast.world.restore_points.save import map_in_threads

BATCH_FILES = 1024
BATCH_BYTES = 64 << 20
"""The limit of one batch from the store, because small contents are held in memory."""


class TreeRestorer:
    """Applies a delta to a folder."""

    def __init__(self, root: BeneathRoot, store: BlobStore, *, max_bytes: int | None = None) -> None:
        """`max_bytes` limits what is written, because a small archive can name one content any number of times."""
        self._max_bytes = max_bytes
        self._written_bytes = 0
        self._root = root
        self._files = PlainFiles(root, allows_hard_links=True)
        self._store = store

    async def apply(self, now: Tree, delta: Delta) -> None:
        """Apply a delta to the current tree. Can be repeated after an interruption."""
        await asyncio.to_thread(self._clear, now, delta)
        wanted = [entry for _, entry in sorted(delta.items()) if entry is not None]
        await asyncio.to_thread(self._make_folders, [entry for entry in wanted if entry.kind == "folder"])
        for batch in _batches([entry for entry in wanted if entry.kind == "file"]):
            names = {name for entry in batch for name in entry.contents}
            sources = await self._store.open_blobs(sorted(names))
            await map_in_threads(batch, partial(self._write, now=now, sources=sources))
        await asyncio.to_thread(self._make_links, [entry for entry in wanted if entry.kind == "link"])

    def _clear(self, now: Tree, delta: Delta) -> None:
        """Remove entries that are gone or change their kind, innermost first."""
        for path, wanted in sorted(delta.items(), reverse=True):
            there = now.get(path)
            if there is None or (wanted is not None and wanted.kind == there.kind and wanted.kind != "link"):
                continue
            with suppress(FileNotFoundError, NotADirectoryError):
                if there.kind == "folder":
                    self._files.remove_folder(path)
                else:
                    self._files.remove(path)

    def _make_folders(self, folders: Sequence[TreeEntry]) -> None:
        for entry in folders:
            self._files.make_folder(entry.path)
            self._set_mode(entry)

    def _write(self, entry: TreeEntry, *, now: Tree, sources: Mapping[str, BlobSource]) -> None:
        there = now.get(entry.path)
        # A new file needs no atomic replace: if it stays incomplete, a repeated restore finds it changed and replaces it.
        is_new = there is None or there.kind != "file"
        open_file = self._files.creating if is_new else self._files.replacing
        with open_file(entry.path, mode=entry.mode) as opened:
            place = 0
            for name in entry.contents:
                copied = sources[name].copy_to(opened, place)
                place += copied
                self._written_bytes += copied
                if self._max_bytes is not None and self._written_bytes > self._max_bytes:
                    raise JournalDamaged(
                        f"the files of the restore point have more than {self._max_bytes:,} bytes",
                        hint="Holdfast restores no more than this from a file; nothing was imported",
                    )

    def _make_links(self, links: Sequence[TreeEntry]) -> None:
        for entry in links:
            parent, name = parent_and_name(entry.path)
            self._files.make_folder(parent)
            with self._root.folder(parent) as folder:
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)
                os.symlink(entry.target, name, dir_fd=folder)

    def _set_mode(self, entry: TreeEntry) -> None:
        try:
            opened = self._root.open(entry.path, os.O_RDONLY | os.O_DIRECTORY)
        except (PermissionError, SymlinkEncountered, PathRefused):
            return  # no permission to read the folder, so its mode stays
        try:
            os.fchmod(opened, entry.mode)
        finally:
            os.close(opened)


def _batches(entries: Sequence[TreeEntry]) -> Iterator[list[TreeEntry]]:
    batch: list[TreeEntry] = []
    size = 0
    for entry in entries:
        if batch and (len(batch) == BATCH_FILES or size + entry.size > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += entry.size
    if batch:
        yield batch
