"""Removal of a folder tree of any depth, which an attacker may have filled.

Nested folders are moved to the top first. So nothing recurses, no path is too long for the kernel, and few descriptors
are open at a time.
"""

import os
import secrets
from itertools import count
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TOKEN_BYTES = 8


def remove_tree(path: Path) -> None:
    """Remove a folder tree, if it exists. Symlinks are removed, not followed."""
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
    waiting = _remove_files(top)
    while waiting:
        name = waiting.pop()
        inner = _open_writable(name, top)
        try:
            for below in _remove_files(inner):
                os.close(_open_writable(below, inner))
                new = next(fresh)
                os.rename(below, new, src_dir_fd=inner, dst_dir_fd=top)
                waiting.append(new)
        finally:
            os.close(inner)
        os.rmdir(name, dir_fd=top)


def _open_writable(name: str, folder: int) -> int:
    """Open a folder and make it writable, which emptying and moving it requires."""
    try:
        inner = os.open(name, _FOLDER, dir_fd=folder)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=folder)
        inner = os.open(name, _FOLDER, dir_fd=folder)
    os.fchmod(inner, 0o700)
    return inner


def _remove_files(folder: int) -> list[str]:
    """Remove the files of a folder and return the names of its folders."""
    folders: list[str] = []
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        if is_folder:
            folders.append(name)
        else:
            os.unlink(name, dir_fd=folder)
    return folders
