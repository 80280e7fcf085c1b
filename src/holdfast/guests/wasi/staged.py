"""A private copy of the workspace for a guest whose changes are to become proposals.

A copy and not an overlay mount, because mounting needs privileges; a clone of the blocks where the file system can
(btrfs, XFS), plain bytes elsewhere; never a hard link, through which a guest would write into the workspace itself.
"""

import errno
import fcntl
import os
import shutil
import stat
from pathlib import Path, PurePosixPath

from holdfast.core import digest_bytes
from holdfast.guests.contract import StagedContents
from holdfast.guests.wasi.changes import Mark, Marks, digest_of, entries, look, mark_of, open_plain, parent_of
from holdfast.store import remove_tree

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
