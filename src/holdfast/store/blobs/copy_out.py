"""Copying blobs into open files: as a reflink if the file system supports it, otherwise byte by byte; always verified.

A reflink is a second file over the same disk blocks. The files stop sharing a block when one of them changes it, so a
reflink is a copy that costs nothing.
"""

import errno
import fcntl
import hashlib
import os
import struct
from pathlib import Path

from holdfast.core import Value, digest_bytes
from holdfast.core.errors import JournalDamaged

_FICLONERANGE = 0x4020940D
"""`_IOW(0x94, 13, struct file_clone_range)` of linux/fs.h."""


class Reflinker:
    """Clones spans of files, and remembers the pairs of file systems that do not support it."""

    def __init__(self) -> None:
        self._unsupported: set[tuple[int, int]] = set()

    def may_clone(self, source: int, device: int) -> bool:
        """Whether cloning an open file to a device may work."""
        return (os.fstat(source).st_dev, device) not in self._unsupported

    def clone(self, source: int, start: int, length: int, target: int, place: int = 0) -> int | None:
        """Clone a span of the source to an offset in the target. Returns the number of bytes, or None if it is not possible."""
        found = os.fstat(source)
        is_rest = start + length >= found.st_size
        # A span must end at a block boundary or at the end of the file; 0 means "to the end", even if it has moved.
        request = struct.pack("qQQQ", source, start, 0 if is_rest else length, place)
        try:
            fcntl.ioctl(target, _FICLONERANGE, request)
        except OSError as problem:
            if problem.errno != errno.EINVAL:  # EINVAL concerns this span, not the file systems
                self._unsupported.add((found.st_dev, os.fstat(target).st_dev))
            return None
        if os.fstat(target).st_size > place + length:
            os.ftruncate(target, place + length)
        return os.fstat(target).st_size - place


def read_span(descriptor: int, start: int, length: int) -> bytes:
    """Read a span of a file, or what there is of it, without moving the position of the descriptor."""
    pieces: list[bytes] = []
    while length > 0 and (piece := os.pread(descriptor, length, start)):
        pieces.append(piece)
        start += len(piece)
        length -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def write_span(descriptor: int, start: int, content: bytes) -> None:
    """Write bytes at an offset in a file."""
    rest = memoryview(content)
    while rest:
        written = os.pwrite(descriptor, rest, start)
        start += written
        rest = rest[written:]


CHUNK_BYTES = 4 * 1024 * 1024


class StoredBlob(Value, kw_only=False):
    """A blob in memory or in a file of the store."""

    digest: str
    held: bytes | Path
    reflinker: Reflinker

    def copy_to(self, target: int, place: int = 0) -> int:
        """Write the blob to an open file at an offset, in any thread, and return its size. Raises JournalDamaged."""
        if isinstance(self.held, bytes):
            size, found = len(self.held), digest_bytes(self.held)
            write_span(target, place, self.held)
        else:
            size, found = self._copy_file(self.held, target, place)
        if found != self.digest:
            raise JournalDamaged(f"the blob {self.digest!r} was changed")
        return size

    def _copy_file(self, path: Path, target: int, place: int) -> tuple[int, str]:
        try:
            source = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            raise JournalDamaged(f"the blob {self.digest!r} is missing") from None
        whole = hashlib.sha256()
        done = 0
        try:
            size = os.fstat(source).st_size
            may_clone = self.reflinker.may_clone(source, os.fstat(target).st_dev)
            is_cloned = may_clone and self.reflinker.clone(source, 0, size, target, place) == size
            while piece := os.read(source, CHUNK_BYTES):
                whole.update(piece)
                if not is_cloned:
                    write_span(target, place + done, piece)
                done += len(piece)
        finally:
            os.close(source)
        return done, whole.hexdigest()
