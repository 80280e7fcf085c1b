"""A private copy of the workspace for a guest whose changes become proposals, and the changes that a run made to a folder.

It is a copy, not an overlay mount, because mounting needs privileges. File systems that can (btrfs, XFS) clone the blocks; others
copy the bytes. It never uses hard links, through which a guest would write into the workspace itself. A scan before and after a run
finds the files that it created, modified and deleted.
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

CHANGED_MEANWHILE = "changed-meanwhile"
"""Replaces the digest of a file that changed while the guest worked on its copy. It matches no content, so a commit refuses it."""
_CHUNK_BYTES = 1 << 20
_FICLONE = 0x40049409
_UNREADABLE = frozenset({errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.EACCES, errno.EPERM})
_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class FileStat(Value):
    """The metadata of a file. Code cannot set the time of the last status change, so `os.utime` cannot hide a write."""

    inode: int
    size: int
    modified_ns: int
    status_ns: int
    mode: int


FileStats = dict[str, FileStat]
"""Every file and symlink of a folder by its relative path."""

DigestBefore = Callable[[str], str | None]
"""The digest of a file before the run."""


def scan(folder: Path) -> FileStats:
    """All files below a folder; symlinks are not followed. Blocks for about 5 µs per file."""
    stats: FileStats = {}
    for path, entry in entries(folder):
        if not entry.is_dir(follow_symlinks=False):
            with suppress(OSError):  # deleted in the meantime, or too deep for a path
                stats[path] = _file_stat(entry.stat(follow_symlinks=False))
    return stats


def entries(folder: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Everything below a folder by its relative path, folders before their contents, as deep as a path can be. Symlinks are
    not followed, and names that are not UTF-8 are omitted: WASI has no other ones, and cannot list a folder that has.
    """
    waiting = [""]
    while waiting:
        prefix = waiting.pop()
        try:
            found = os.scandir(folder / prefix)
        except OSError:
            continue  # deleted in the meantime, or unreadable, in which case the guest cannot have changed it
        with found:
            for entry in found:
                if not _is_unicode(entry.name):
                    continue
                yield f"{prefix}{entry.name}", entry
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{prefix}{entry.name}/")


def changes_between(
    folder: Path, before: FileStats, after: FileStats, *, digest_before: DigestBefore | None = None
) -> tuple[Change, ...]:
    """The changes between two scans, sorted by path. With `digest_before` they are staged changes."""
    changes = [
        _change(folder, path, "modified" if path in before else "created", digest_before)
        for path, found in after.items()
        if before.get(path) != found
    ]
    changes += [_change(folder, path, "deleted", digest_before) for path in before if path not in after]
    return tuple(sorted(changes, key=lambda change: change.path))


def stat_of(path: Path) -> FileStat | None:
    """The metadata of what is at a path now; a symlink is not followed."""
    try:
        return _file_stat(path.lstat())
    except OSError:
        return None


@contextmanager
def parent_of(root: Path, path: str) -> Iterator[tuple[int, str]]:
    """A descriptor of the folder that contains a path, and the name in it. `root` is a real path. Raises OSError if any folder
    on the way has become a symlink.
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


def open_regular(name: str, folder: int) -> int:
    """Open a regular file for reading. Neither blocks nor follows: since the scan it may have become a FIFO or a symlink."""
    return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)


def digest_of(root: Path, path: str) -> str | None:
    """The SHA-256 of the content of a regular file or of the target of a symlink; None for anything else, which is never opened."""
    try:
        with parent_of(root, path) as (folder, name):
            kind = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
            if stat.S_ISLNK(kind):
                return digest_bytes(os.readlink(name, dir_fd=folder).encode(errors="surrogateescape"))
            if not stat.S_ISREG(kind):
                return None
            descriptor = open_regular(name, folder)
    except OSError:
        return None
    with open(descriptor, "rb", buffering=0) as file:
        sha256 = hashlib.sha256()
        while chunk := file.read(_CHUNK_BYTES):
            sha256.update(chunk)
        return sha256.hexdigest()


class StagedView:
    """Makes a folder equal to its base plus the staged changes between runs. Copies only what differs."""

    def __init__(self, *, base: Path, folder: Path, staged: StagedContents = dict) -> None:
        self.base = base
        self.folder = folder
        self._staged = staged
        self._sources: dict[str, FileStat | bytes] = {}
        """What each file of the folder was made from: a file of the base, or staged content."""
        self._folder_stats: FileStats | None = None

    def refresh(self) -> FileStats:
        """Update the folder and return its files. Blocks."""
        wanted = self._wanted_sources()
        if self._folder_stats is None:
            _empty(self.folder)
        present = scan(self.folder)
        same = {
            path
            for path, source in wanted.items()
            if self._folder_stats is not None
            and self._sources.get(path) == source
            and path in present
            and self._folder_stats.get(path) == present[path]
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
        self._sources, self._folder_stats = wanted, scan(self.folder)
        return self._folder_stats

    def digest_before(self, path: str) -> str | None:
        """The digest of the content that the guest started with, or CHANGED_MEANWHILE if it has changed since."""
        source = self._sources.get(path)
        if self._current_source(path) != source:
            return CHANGED_MEANWHILE
        return digest_bytes(source) if isinstance(source, bytes) else digest_of(self.base, path)

    def _wanted_sources(self) -> dict[str, FileStat | bytes]:
        wanted: dict[str, FileStat | bytes] = dict(scan(self.base))
        for path, content in self._staged().items():
            if content is None:
                wanted.pop(path, None)
            else:
                wanted[path] = content
        return wanted

    def _current_source(self, path: str) -> FileStat | bytes | None:
        staged = self._staged()
        return staged[path] if path in staged else stat_of(self.base / path)

    def _match_folders(self, written: list[str]) -> None:
        """Create the folders of the base and of the staged files, and remove all others. Runs after the files that differ are
        deleted: a file may be where a folder belongs, and a staged file where the base has a folder.
        """
        wanted = {path: None for path in _folders(self.base) if path not in written}
        for path in written:
            wanted |= {str(parent): None for parent in reversed(PurePosixPath(path).parents)}
        for path in _folders(self.folder):
            parent, _, _ = path.rpartition("/")
            if path not in wanted and (
                not parent or parent in wanted
            ):  # deeper ones are removed with their parent
                remove_tree(self.folder / path)
        for path in wanted:
            (self.folder / path).mkdir(parents=True, exist_ok=True)

    def _copy(self, path: str) -> None:
        """Copy one entry of the base with its mode and time. Omits what is deleted, moved or unreadable."""
        try:
            with parent_of(self.base, path) as (source, name):
                _copy_entry(source, name, self.folder / path)
        except OSError as problem:
            if problem.errno not in _UNREADABLE:
                raise


def _change(
    folder: Path,
    path: str,
    kind: Literal["created", "modified", "deleted"],
    digest_before: DigestBefore | None,
) -> Change:
    after = None if kind == "deleted" else stat_of(folder / path)
    return Change(
        path=path,
        kind=kind,
        before=None if digest_before is None or kind == "created" else digest_before(path),
        after=None if after is None else digest_of(folder, path),
        is_staged=digest_before is not None,
        mode=None if after is None else stat.S_IMODE(after.mode),
    )


def _file_stat(found: os.stat_result) -> FileStat:
    return FileStat(
        inode=found.st_ino,
        size=found.st_size,
        modified_ns=found.st_mtime_ns,
        status_ns=found.st_ctime_ns,
        mode=found.st_mode,
    )


def _is_unicode(name: str) -> bool:
    if name.isascii():
        return True
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _folders(root: Path) -> dict[str, None]:
    """All folders below a folder, parents first; symlinks do not count."""
    return {path: None for path, entry in entries(root) if entry.is_dir(follow_symlinks=False)}


def _empty(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            remove_tree(Path(entry.path))
        else:
            os.unlink(entry.path)


def _copy_entry(source: int, name: str, target: Path) -> None:
    """Copy one entry of a folder. Omits devices, FIFOs and sockets."""
    found = os.stat(name, dir_fd=source, follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        os.symlink(os.readlink(name, dir_fd=source), target)
    elif stat.S_ISREG(found.st_mode):
        with open(open_regular(name, source), "rb") as reading, target.open("xb") as writing:
            try:
                fcntl.ioctl(writing.fileno(), _FICLONE, reading.fileno())
            except OSError:  # this file system cannot clone blocks
                shutil.copyfileobj(reading, writing, 1 << 20)
        os.chmod(target, stat.S_IMODE(found.st_mode))
        os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
