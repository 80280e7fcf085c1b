"""A private copy of the workspace for a guest whose changes are to become proposals.

A copy and not an overlay mount, because mounting needs privileges; a clone of the blocks where the file system can
(btrfs, XFS), plain bytes elsewhere; never a hard link, through which a guest would write into the workspace itself.

What a run did to a folder: created, modified and deleted files, found by looking before and after.
"""

import errno
import fcntl
import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Literal

from holdfast.core import Change, Value, digest_bytes
from holdfast.guests.contract import StagedContents
from holdfast.store import remove_tree

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


CHANGED_MEANWHILE = "changed-meanwhile"
"""Stands for the content of a file that somebody changed while the guest worked on its copy: no commit may match it."""
_FICLONE = 0x40049409
_OUT_OF_REACH = frozenset({errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.EACCES, errno.EPERM})


class StagedView:
    """Keeps a folder equal to its base with what is staged over it, between runs; copies only what differs."""

    def __init__(self, *, base: Path, folder: Path, staged: StagedContents = dict) -> None:
        self.base = base
        self.folder = folder
        self._staged = staged
        self._shown: dict[str, Mark | bytes] = {}
        """What each file of the folder was made from: a file of the base, or staged content."""
        self._seen_folder: Marks | None = None

    def refresh(self) -> Marks:
        """Make the folder show what it has to show and return its marks. Blocks."""
        wanted = self._wanted()
        if self._seen_folder is None:
            _empty(self.folder)
        present = look(self.folder)
        same = {
            path
            for path, source in wanted.items()
            if self._seen_folder is not None
            and self._shown.get(path) == source
            and path in present
            and self._seen_folder.get(path) == present[path]
        }
        for path in present.keys() - same:
            (self.folder / path).unlink()
        written = [path for path, source in wanted.items() if isinstance(source, bytes)]
        self._match_folders(written)
        for path in wanted.keys() - same:
            source = wanted[path]
            if isinstance(source, bytes):
                (self.folder / path).write_bytes(source)
            else:
                self._copy(path)
        self._shown, self._seen_folder = wanted, look(self.folder)
        return self._seen_folder

    def content_before(self, path: str) -> str | None:
        """The digest of what the guest was shown; a name that fits no content where that has changed since."""
        shown = self._shown.get(path)
        if self._now(path) != shown:
            return CHANGED_MEANWHILE
        return digest_bytes(shown) if isinstance(shown, bytes) else digest_of(self.base, path)

    def _wanted(self) -> dict[str, Mark | bytes]:
        wanted: dict[str, Mark | bytes] = dict(look(self.base))
        for path, content in self._staged().items():
            if content is None:
                wanted.pop(path, None)
            else:
                wanted[path] = content
        return wanted

    def _now(self, path: str) -> Mark | bytes | None:
        staged = self._staged()
        return staged[path] if path in staged else mark_of(self.base / path)

    def _match_folders(self, written: list[str]) -> None:
        """The folders of the base and those around staged files. Only after the files that differ are gone: one may stand
        where a folder belongs, and staged files where the base has a folder.
        """
        wanted = {path: None for path in _folders(self.base) if path not in written}
        for path in written:
            wanted |= {str(parent): None for parent in reversed(PurePosixPath(path).parents)}
        for path in _folders(self.folder):
            around, _, _ = path.rpartition("/")
            if path not in wanted and (not around or around in wanted):  # others go with the one they lie in
                remove_tree(self.folder / path)
        for path in wanted:
            (self.folder / path).mkdir(parents=True, exist_ok=True)

    def _copy(self, path: str) -> None:
        """One entry of the base with its mode and time. What is gone, elsewhere by now or not ours to read is left out."""
        try:
            with parent_of(self.base, path) as (source, name):
                _copy(source, name, self.folder / path)
        except OSError as problem:
            if problem.errno not in _OUT_OF_REACH:
                raise


def _folders(root: Path) -> dict[str, None]:
    """All folders below, parents first; symlinks are none."""
    return {path: None for path, entry in entries(root) if entry.is_dir(follow_symlinks=False)}


def _empty(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            remove_tree(Path(entry.path))
        else:
            os.unlink(entry.path)


def _copy(source: int, name: str, target: Path) -> None:
    """Copy one entry of a folder. Devices, FIFOs and sockets are left out."""
    found = os.stat(name, dir_fd=source, follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        os.symlink(os.readlink(name, dir_fd=source), target)
    elif stat.S_ISREG(found.st_mode):
        with open(open_plain(name, source), "rb") as reading, target.open("xb") as writing:
            try:
                fcntl.ioctl(writing.fileno(), _FICLONE, reading.fileno())
            except OSError:  # this file system shares no blocks
                shutil.copyfileobj(reading, writing, 1 << 20)
        os.chmod(target, stat.S_IMODE(found.st_mode))
        os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
