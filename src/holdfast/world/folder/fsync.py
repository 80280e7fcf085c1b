"""Making what was written durable: it survives the loss of power and not only of the process."""

import ctypes
import os
from collections.abc import Sequence
from contextlib import suppress

from holdfast.world.paths.names import parent_and_name
from holdfast.world.paths.open_beneath import BeneathRoot

MAX_SINGLE_SYNCS = 64
"""Up to so many files are made durable one by one; flushing a busy file system whole takes as long as others wrote."""


def sync_files(root: BeneathRoot, paths: Sequence[str]) -> None:
    """Make files, their names and their absence durable: one by one, or for many the whole file system in one go."""
    if len(paths) > MAX_SINGLE_SYNCS:
        _sync_at(root, ".", is_whole=True)
        return
    folders = {parent_and_name(path)[0] for path in paths}
    for path in (*paths, *sorted(folders)):
        with suppress(FileNotFoundError, NotADirectoryError):  # it was deleted, and so was its folder
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
