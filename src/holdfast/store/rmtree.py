"""Removing a folder with everything in it, however deep: whoever filled it may have meant harm.

Folders inside folders are moved to the top first. So nothing recurses, no path grows too long for the kernel, and few
files are open at a time.
"""

import os
import secrets
from itertools import count
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TOKEN_BYTES = 8


def remove_tree(path: Path) -> None:
    """Remove a folder and all that is in it; one that is not there is no error. Symlinks are removed, not followed."""
    try:
        top = os.open(path, _FOLDER)
    except FileNotFoundError:
        return
    try:
        _empty(top)
    finally:
        os.close(top)
    path.rmdir()


def _empty(top: int) -> None:
    token = secrets.token_hex(_TOKEN_BYTES)
    fresh = (f"{token}-{number}" for number in count())
    waiting = _without_files(top)
    while waiting:
        name = waiting.pop()
        inner = _opened(name, top)
        try:
            for below in _without_files(inner):
                os.close(_opened(below, inner))
                new = next(fresh)
                os.rename(below, new, src_dir_fd=inner, dst_dir_fd=top)
                waiting.append(new)
        finally:
            os.close(inner)
        os.rmdir(name, dir_fd=top)


def _opened(name: str, folder: int) -> int:
    """A folder, open and ours to write in: otherwise it could neither be emptied nor moved."""
    try:
        inner = os.open(name, _FOLDER, dir_fd=folder)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=folder)
        inner = os.open(name, _FOLDER, dir_fd=folder)
    os.fchmod(inner, 0o700)
    return inner


def _without_files(folder: int) -> list[str]:
    """Remove what is no folder, and name what is one."""
    folders: list[str] = []
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        if is_folder:
            folders.append(name)
        else:
            os.unlink(name, dir_fd=folder)
    return folders
