"""Bringing a folder to what a tree says, by descriptor, touching only what differs."""

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress

from holdfast.core.errors import PathRefused
from holdfast.world.descent import LinkInTheWay, Root
from holdfast.world.files import PlainFiles, write_all
from holdfast.world.manifests import Delta, Entry, Fetch, Tree
from holdfast.world.names import parent_and_name

BATCH_FILES = 64


class Rebuild:
    """The way from the tree that is there to another one."""

    def __init__(self, root: Root, fetch: Fetch) -> None:
        self._root = root
        self._files = PlainFiles(root, allows_hard_links=True)
        self._fetch = fetch

    async def apply(self, now: Tree, delta: Delta) -> None:
        """Make the changes of a delta to what is there. May be repeated after it was cut off."""
        await asyncio.to_thread(self._clear, now, delta)
        wanted = [entry for _, entry in sorted(delta.items()) if entry is not None]
        await asyncio.to_thread(self._make_folders, [entry for entry in wanted if entry.kind == "folder"])
        files = [entry for entry in wanted if entry.kind == "file"]
        small = [entry for entry in files if not entry.chunks]
        for start in range(0, len(small), BATCH_FILES):
            batch = small[start : start + BATCH_FILES]
            contents = await asyncio.gather(*(self._fetch(entry.fingerprint) for entry in batch))
            await asyncio.to_thread(self._write_all, now, batch, contents)
        for entry in files:
            if entry.chunks:
                await self._write_pieces(entry)
        await asyncio.to_thread(self._make_links, [entry for entry in wanted if entry.kind == "link"])

    def _clear(self, now: Tree, delta: Delta) -> None:
        """Remove what is to go, and what is to become something else; the innermost first."""
        for path, wanted in sorted(delta.items(), reverse=True):
            there = now.get(path)
            if there is None or (wanted is not None and wanted.kind == there.kind and wanted.kind != "link"):
                continue
            with suppress(FileNotFoundError, NotADirectoryError):
                if there.kind == "folder":
                    self._files.remove_folder(path)
                else:
                    self._files.remove(path)

    def _make_folders(self, folders: Sequence[Entry]) -> None:
        for entry in folders:
            self._files.make_folder(entry.path)
            self._set_mode(entry)

    def _write_all(self, now: Tree, entries: Sequence[Entry], contents: Sequence[bytes]) -> None:
        for entry, content in zip(entries, contents, strict=True):
            there = now.get(entry.path)
            if there is None or there.kind != "file":
                # Half of a new file is no worse than none: a repeated attempt finds it different and replaces it.
                self._files.create(entry.path, content, mode=entry.mode)
            else:
                self._files.replace(entry.path, content, mode=entry.mode)

    async def _write_pieces(self, entry: Entry) -> None:
        with self._files.replacing(entry.path, mode=entry.mode) as opened:
            for chunk in entry.chunks:
                await asyncio.to_thread(write_all, opened, await self._fetch(chunk))

    def _make_links(self, links: Sequence[Entry]) -> None:
        for entry in links:
            parent, name = parent_and_name(entry.path)
            self._files.make_folder(parent)
            with self._root.folder(parent) as folder:
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)
                os.symlink(entry.target, name, dir_fd=folder)

    def _set_mode(self, entry: Entry) -> None:
        try:
            opened = self._root.open(entry.path, os.O_RDONLY | os.O_DIRECTORY)
        except (PermissionError, LinkInTheWay, PathRefused):
            return  # a folder we may not read was none of ours to change
        try:
            os.fchmod(opened, entry.mode)
        finally:
            os.close(opened)
