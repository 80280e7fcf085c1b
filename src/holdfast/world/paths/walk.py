"""Walks a folder by descriptor. Symlinks are reported and never followed."""

import os
from collections.abc import Iterator
from typing import NamedTuple

from holdfast.world.paths.open_beneath import BeneathRoot

READ_FOLDER = os.O_RDONLY | os.O_DIRECTORY


class WalkEntry(NamedTuple):
    """One name in a folder. `entry` reads from disk only what the listing did not contain."""

    path: str
    entry: "os.DirEntry[str]"


def children(root: BeneathRoot, path: str) -> Iterator[WalkEntry]:
    """The names directly in a folder, in no order."""
    folder = root.open(path, READ_FOLDER)
    try:
        prefix = "" if path == "." else f"{path}/"
        # The descriptor stays open while entries are yielded, because their stat() uses it.
        with os.scandir(folder) as entries:
            for entry in entries:
                yield WalkEntry(prefix + entry.name, entry)
    finally:
        os.close(folder)


def walk(root: BeneathRoot, start: str = ".") -> Iterator[WalkEntry]:
    """Everything beneath a folder, folders before their contents. A folder that disappears in the meantime is skipped."""
    pending = [start]
    while pending:
        path = pending.pop()
        try:
            for found in children(root, path):
                if found.entry.is_dir(follow_symlinks=False):
                    pending.append(found.path)
                yield found
        except (FileNotFoundError, NotADirectoryError):
            if path == start:
                raise
