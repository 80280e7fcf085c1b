"""What a run did to a folder: created, modified and deleted files, found by looking before and after."""

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from holdfast.core import Change, Value, digest_bytes

_CHUNK_BYTES = 1 << 20
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Mark(Value):
    """What a file looked like. The time of the last status change cannot be set, so no write hides behind `os.utime`."""

    inode: int
    size: int
    modified_ns: int
    status_ns: int
    mode: int


Marks = dict[str, Mark]
"""Every file and symlink of a folder by its relative path."""

ContentBefore = Callable[[str], str | None]
"""The digest of what a file was before."""


def look(folder: Path) -> Marks:
    """All files below, symlinks not followed. Blocks for about 5 µs a file."""
    marks: Marks = {}
    for path, entry in entries(folder):
        if not entry.is_dir(follow_symlinks=False):
            with suppress(OSError):  # gone in the meantime, or too deep for a path
                marks[path] = _mark(entry.stat(follow_symlinks=False))
    return marks


def entries(folder: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Everything below by its relative path, folders before what they hold, as deep as a path can say; symlinks are not
    followed.
    """
    waiting = [""]
    while waiting:
        prefix = waiting.pop()
        try:
            found = os.scandir(folder / prefix)
        except OSError:
            continue  # gone in the meantime, or not ours to read: then the guest cannot have changed it
        with found:
            for entry in found:
                yield f"{prefix}{entry.name}", entry
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{prefix}{entry.name}/")


def between(
    folder: Path, before: Marks, after: Marks, *, content_before: ContentBefore | None = None
) -> tuple[Change, ...]:
    """The changes from one look to the other, by path. Where somebody knows what the files were, they are staged."""
    changes = [
        _change(folder, path, "modified" if path in before else "created", content_before)
        for path, mark in after.items()
        if before.get(path) != mark
    ]
    changes += [_change(folder, path, "deleted", content_before) for path in before if path not in after]
    return tuple(sorted(changes, key=lambda change: change.path))


def mark_of(path: Path) -> Mark | None:
    """What is at a path now; a symlink is not followed."""
    try:
        return _mark(path.lstat())
    except OSError:
        return None


@contextmanager
def parent_of(root: Path, path: str) -> Iterator[tuple[int, str]]:
    """The folder that a path lies in, open, and its name there. A folder that became a symlink meanwhile, below a root given by
    its real path or above, is an OSError.
    """
    *folders, name = path.split("/")
    here = os.open("/", _FOLDER)
    try:
        for folder in (*root.parts[1:], *folders):
            inner = os.open(folder, _FOLDER, dir_fd=here)
            os.close(here)
            here = inner
        yield here, name
    finally:
        os.close(here)


def open_plain(name: str, folder: int) -> int:
    """A plain file, open to read. Neither waits nor follows: since the look it may have become a FIFO or a symlink."""
    return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)


def digest_of(root: Path, path: str) -> str | None:
    """SHA-256 of a plain file's content or of a symlink's target; None for anything else, which is never opened."""
    try:
        with parent_of(root, path) as (folder, name):
            kind = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISLNK(kind):
                return digest_bytes(os.readlink(name, dir_fd=folder).encode(errors="surrogateescape"))
            if not stat.S_ISREG(kind):
                return None
            descriptor = open_plain(name, folder)
    except OSError:
        return None
    with open(descriptor, "rb", buffering=0) as file:
        sha256 = hashlib.sha256()
        while chunk := file.read(_CHUNK_BYTES):
            sha256.update(chunk)
        return sha256.hexdigest()


def _change(
    folder: Path,
    path: str,
    kind: Literal["created", "modified", "deleted"],
    content_before: ContentBefore | None,
) -> Change:
    after = None if kind == "deleted" else mark_of(folder / path)
    return Change(
        path=path,
        kind=kind,
        before=None if content_before is None or kind == "created" else content_before(path),
        after=None if after is None else digest_of(folder, path),
        is_staged=content_before is not None,
        mode=None if after is None else stat.S_IMODE(after.mode),
    )


def _mark(found: os.stat_result) -> Mark:
    return Mark(
        inode=found.st_ino,
        size=found.st_size,
        modified_ns=found.st_mtime_ns,
        status_ns=found.st_ctime_ns,
        mode=found.st_mode,
    )
