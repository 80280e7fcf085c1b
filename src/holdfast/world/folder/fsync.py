"""Makes written files durable, so that they survive a power failure."""

import ctypes
import os
from collections.abc import Sequence
from contextlib import suppress

from holdfast.world.paths.names import parent_and_name
from holdfast.world.paths.open_beneath import BeneathRoot, SymlinkEncountered

MAX_SINGLE_SYNCS = 64
"""Up to this many files are synced one by one, because syncing a busy file system also waits for other writers."""


def sync_files(root: BeneathRoot, paths: Sequence[str]) -> None:
    """Sync files and the folders of created or deleted names: one by one, or the whole file system if there are many."""
    if len(paths) > MAX_SINGLE_SYNCS:
        _sync_at(root, ".", is_whole=True)
        return
    folders = {parent_and_name(path)[0] for path in paths}
    for path in (*paths, *sorted(folders)):
        # Deleted, perhaps with its folder; or a symlink, which its folder holds.
        with suppress(FileNotFoundError, NotADirectoryError, SymlinkEncountered):
            _sync_at(root, path)


def _sync_at(root: BeneathRoot, path: str, *, is_whole: bool = False) -> None:
    opened = root.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        syncfs = getattr(ctypes.CDLL(None), "syncfs", None) if is_whole else None
        if syncfs is not None and syncfs(opened) == 0:
            return
        if is_whole:
            os.sync()
        else:
            os.fsync(opened)
    finally:
        os.close(opened)
