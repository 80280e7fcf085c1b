"""Scans a workspace for changes without reading unchanged files, with a cache of `stat` results.

A file with the same inode, size, times and mode is taken as unchanged. File times have a granularity: a file that changed
right before a scan could change again within it, so such a scan is not trusted the next time. The cache may be lost at any
time; then every file is read again. Its file is optional.
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
from holdfast.world.restore_points.manifest import TreeEntry, escape, unescape

GRANULARITY_NS = 20_000_000
"""Coarser than the file times of any current kernel."""

StatSignature = tuple[int, int, int, int, int]
"""Inode, size, modification and status-change times, and mode: a change of the file changes at least one."""


class ScanEntry(NamedTuple):
    """One entry of the workspace. `is_settled` means that a later change would change its signature."""

    path: str
    signature: StatSignature
    is_settled: bool

    @property
    def size(self) -> int:
        """Bytes of content."""
        return self.signature[1]

    @property
    def mode(self) -> int:
        """Kind and permissions."""
        return self.signature[4]


def scan_tree(root: BeneathRoot) -> Iterator[ScanEntry]:
    """Every entry beneath a root. Also removes the scratch files of killed writers."""
    files = PlainFiles(root, allows_hard_links=True)
    started_ns = time.time_ns()
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
        yield _scan_entry(found.path, seen, started_ns)


def _scan_entry(path: str, seen: os.stat_result, started_ns: int) -> ScanEntry:
    modified_ns, changed_ns = seen.st_mtime_ns, seen.st_ctime_ns
    signature = (seen.st_ino, seen.st_size, modified_ns, changed_ns, seen.st_mode)
    return ScanEntry(
        path,
        signature,
        modified_ns + GRANULARITY_NS < started_ns and changed_ns + GRANULARITY_NS < started_ns,
    )


_Known = tuple[StatSignature, str]


class StatCache:
    """The stat signatures of files when they were last read, with the stamp of what was read."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._known: dict[str, _Known] = _load(file) if file else {}

    def is_unchanged(self, scanned: ScanEntry, entry: TreeEntry) -> bool:
        """Whether a scanned file is certainly still the one of an entry."""
        known = self._known.get(scanned.path)
        return known is not None and known[0] == scanned.signature and known[1] == entry.stamp

    def record(self, scanned: ScanEntry, entry: TreeEntry) -> None:
        """Record that a file was read right after this scan."""
        if scanned.is_settled:
            self._known[scanned.path] = (scanned.signature, entry.stamp)
        else:
            self._known.pop(scanned.path, None)

    def save(self) -> None:
        """Save the cache for the next process. A full disk is not an error, because the cache may be lost."""
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
    # File names are private, whatever the umask. Not synced, because the cache may be lost.
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    os.fchmod(descriptor, 0o600)
    return descriptor


def _load(file: Path) -> dict[str, _Known]:
    try:
        known = msgspec.msgpack.decode(file.read_bytes(), type=dict[str, _Known])
        return {unescape(path): each for path, each in known.items()}
    except (OSError, ValueError):  # damaged, or not UTF-8
        return {}
