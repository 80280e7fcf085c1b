"""A private copy of the workspace for a guest whose changes are to become proposals.

A copy and not an overlay mount, because mounting needs privileges; a clone of the blocks where the file system can
(btrfs, XFS), plain bytes elsewhere; never a hard link, through which a guest would write into the workspace itself.
"""

import contextlib
import fcntl
import os
import shutil
import stat
from pathlib import Path

from holdfast.guests.wasi.changes import Marks, digest_of, look, mark_of

CHANGED_MEANWHILE = "changed-meanwhile"
"""Stands for the content of a file that somebody changed while the guest worked on its copy: no commit may match it."""
_FICLONE = 0x40049409


class StagedView:
    """Keeps a folder equal to its base between runs; copies only what differs."""

    def __init__(self, *, base: Path, folder: Path) -> None:
        self.base = base
        self.folder = folder
        self._seen_base: Marks = {}
        self._seen_folder: Marks | None = None

    def refresh(self) -> Marks:
        """Make the folder equal to the base and return its marks. Blocks."""
        base = look(self.base)
        if self._seen_folder is None:
            _empty(self.folder)
        present = look(self.folder)
        same = {
            path
            for path, mark in base.items()
            if self._seen_folder is not None
            and self._seen_base.get(path) == mark
            and path in present
            and self._seen_folder.get(path) == present[path]
        }
        for path in present.keys() - same:
            (self.folder / path).unlink()
        self._match_folders()
        for path in base.keys() - same:
            _copy(self.base / path, self.folder / path)
        self._seen_base, self._seen_folder = base, look(self.folder)
        return self._seen_folder

    def content_before(self, path: str) -> str | None:
        """The digest of what the guest was shown; a name that fits no content where the base has changed since."""
        if mark_of(self.base / path) != self._seen_base.get(path):
            return CHANGED_MEANWHILE
        return digest_of(self.base / path)

    def _match_folders(self) -> None:
        """Same folders in both. Only after the files that differ are gone: one may stand where a folder belongs."""
        wanted = _folders(self.base)
        for path in reversed(_folders(self.folder)):
            if path not in wanted:
                with contextlib.suppress(OSError):  # not empty: a file in it could not be removed
                    (self.folder / path).rmdir()
        for path in wanted:
            (self.folder / path).mkdir(exist_ok=True)


def _folders(root: Path) -> dict[str, None]:
    """All folders below, parents first; symlinks are none."""
    found: dict[str, None] = {}
    for place, folders, _ in os.walk(root):
        inside = Path(place).relative_to(root)
        found |= {str(inside / name): None for name in folders if not (Path(place) / name).is_symlink()}
    return found


def _empty(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)


def _copy(source: Path, target: Path) -> None:
    """Copy one entry with its mode and time. Devices, FIFOs and sockets are left out."""
    try:
        found = source.lstat()
    except FileNotFoundError:
        return
    if stat.S_ISLNK(found.st_mode):
        os.symlink(os.readlink(source), target)
    elif stat.S_ISREG(found.st_mode):
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with open(os.open(source, flags), "rb") as reading, target.open("xb") as writing:
            try:
                fcntl.ioctl(writing.fileno(), _FICLONE, reading.fileno())
            except OSError:  # this file system shares no blocks
                shutil.copyfileobj(reading, writing, 1 << 20)
        os.chmod(target, stat.S_IMODE(found.st_mode))
        os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
