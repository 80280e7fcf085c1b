"""What the files looked like when they were last read: how a restore point knows what it need not read again.

It may be lost at any time; then everything is read once more. A file to remember it by is optional.

Looking over a workspace for what changed, without reading what did not.

A file whose inode, size and times are as they were is taken to be as it was. Times have a grain: what was changed right
before it was looked at could be changed again within the same grain, so such a look is not trusted the next time.
"""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from holdfast.core.errors import StoreUnavailable
from holdfast.store import private_folder
from holdfast.world.folder.files import PlainFiles, is_abandoned
from holdfast.world.paths.names import SCRATCH_PREFIX
from holdfast.world.paths.open_beneath import BeneathRoot
from holdfast.world.paths.walk import walk
from holdfast.world.restore_points.manifest import Entry, escape, unescape

GRAIN_NS = 20_000_000
"""Coarser than the clock that stamps files on any kernel in use."""

Sign = tuple[int, int, int, int, int]
"""What tells whether a file changed: inode, size, both times, and the mode with the kind."""


class ScanEntry(NamedTuple):
    """One thing in the workspace. `is_settled` is whether a later change would show in its sign."""

    path: str
    sign: Sign
    is_settled: bool

    @property
    def size(self) -> int:
        """Bytes of content."""
        return self.sign[1]

    @property
    def mode(self) -> int:
        """Kind and permissions."""
        return self.sign[4]


def scan_tree(root: BeneathRoot) -> Iterator[ScanEntry]:
    """Everything beneath a root; what killed writers left is removed on the way."""
    files = PlainFiles(root, allows_hard_links=True)
    began_ns = time.time_ns()
    for found in walk(root):
        if found.entry.name.startswith(SCRATCH_PREFIX):
            if is_abandoned(found.entry.name):
                with suppress(FileNotFoundError):
                    files.remove(found.path)
            continue
        try:
            seen = found.entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            continue
        yield _look(found.path, seen, began_ns)


def _look(path: str, seen: os.stat_result, began_ns: int) -> ScanEntry:
    modified_ns, changed_ns = seen.st_mtime_ns, seen.st_ctime_ns
    sign = (seen.st_ino, seen.st_size, modified_ns, changed_ns, seen.st_mode)
    return ScanEntry(path, sign, modified_ns + GRAIN_NS < began_ns and changed_ns + GRAIN_NS < began_ns)


_Known = tuple[Sign, str]


class StatCache:
    """The signs of files at their last reading, with the stamp of what was read."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._known: dict[str, _Known] = _load(file) if file else {}

    def vouch_for(self, look: ScanEntry, entry: Entry) -> bool:
        """Whether what was looked at is certainly still the file of an entry."""
        known = self._known.get(look.path)
        return known is not None and known[0] == look.sign and known[1] == entry.stamp

    def note(self, look: ScanEntry, entry: Entry) -> None:
        """A file was read right after this look."""
        if look.is_settled:
            self._known[look.path] = (look.sign, entry.stamp)
        else:
            self._known.pop(look.path, None)

    def save(self) -> None:
        """Remember for the next process. A disk that takes nothing more is no reason to fail: it may be lost."""
        if self._file is None:
            return
        fresh = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        content = msgspec.msgpack.encode({escape(path): known for path, known in self._known.items()})
        with suppress(OSError, StoreUnavailable):
            private_folder(self._file.parent)
            try:
                with open(fresh, "wb", opener=_private) as file:
                    file.write(content)
                os.replace(fresh, self._file)
            finally:
                fresh.unlink(missing_ok=True)


def _private(path: str, flags: int) -> int:
    # Names of files are nobody else's business, whatever the umask. Not synced: it may be lost.
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    os.fchmod(descriptor, 0o600)
    return descriptor


def _load(file: Path) -> dict[str, _Known]:
    try:
        known = msgspec.msgpack.decode(file.read_bytes(), type=dict[str, _Known])
    except (OSError, ValueError):  # not what we wrote, or no UTF-8 in it
        return {}
    return {unescape(path): each for path, each in known.items()}
