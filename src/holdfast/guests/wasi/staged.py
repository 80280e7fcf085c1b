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

from holdfast.guests.wasi.changes import Marks, look

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

    def _match_folders(self) -> None:
        for path in _folders(self.base):
            (self.folder / path).mkdir(exist_ok=True)
        for path in reversed(_folders(self.folder)):
            if not (self.base / path).is_dir():
                with contextlib.suppress(OSError):  # not empty: it holds what is about to be compared
                    (self.folder / path).rmdir()


def _folders(root: Path) -> list[str]:
    """All folders below, parents first."""
    found: list[str] = []
    for place, folders, _ in os.walk(root):
        found += [os.path.relpath(os.path.join(place, name), root) for name in folders
                  if not os.path.islink(os.path.join(place, name))]  # fmt: skip
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
