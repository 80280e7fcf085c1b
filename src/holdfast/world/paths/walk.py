"""Everything beneath a folder, by descriptor: links are seen as links and never followed."""

import os
from collections.abc import Iterator
from typing import NamedTuple

from holdfast.world.paths.open_beneath import BeneathRoot

READ_FOLDER = os.O_RDONLY | os.O_DIRECTORY


class Found(NamedTuple):
    """One name in a folder. `entry` asks the disk only for what the listing did not already tell."""

    path: str
    entry: "os.DirEntry[str]"


def children(root: BeneathRoot, path: str) -> Iterator[Found]:
    """What lies directly in a folder, in no order."""
    folder = root.open(path, READ_FOLDER)
    try:
        prefix = "" if path == "." else f"{path}/"
        # The descriptor stays open while entries are handed out: their stat() goes through it.
        with os.scandir(folder) as entries:
            for entry in entries:
                yield Found(prefix + entry.name, entry)
    finally:
        os.close(folder)


def walk(root: BeneathRoot, start: str = ".") -> Iterator[Found]:
    """Everything beneath a folder, folders before what is in them; a folder that vanishes meanwhile is left out."""
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
