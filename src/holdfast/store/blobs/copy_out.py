"""A content of the store on its way out into an open file: cloned where the file system can, else copied; checked.

Cloning: a second file over the same blocks of the disk (a reflink), where the file system can; nothing is copied.

Files that share blocks part company when one of them is written to, so a clone is a copy that costs nothing.

Parts of open files, read and written to their last byte: one system call may move only some of them.
"""

import errno
import fcntl
import hashlib
import os
import struct
from dataclasses import dataclass
from pathlib import Path

from holdfast.core import digest_bytes
from holdfast.core.errors import JournalDamaged

_FICLONERANGE = 0x4020940D
"""`_IOW(0x94, 13, struct file_clone_range)` of linux/fs.h."""


class Reflinker:
    """Clones parts of files, and remembers between which file systems it is of no use to try."""

    def __init__(self) -> None:
        self._refusing: set[tuple[int, int]] = set()

    def may_clone(self, source: int, device: int) -> bool:
        """Whether it is worth a try to clone an open file onto a device."""
        return (os.fstat(source).st_dev, device) not in self._refusing

    def clone(self, source: int, start: int, length: int, target: int, place: int = 0) -> int | None:
        """Let a place in the target share what the source has of a part; how many bytes, None where it cannot be done."""
        found = os.fstat(source)
        is_rest = start + length >= found.st_size
        # A part has to end at a block or at the end of the file; 0 is "to the end", wherever that is by now.
        request = struct.pack("qQQQ", source, start, 0 if is_rest else length, place)
        try:
            fcntl.ioctl(target, _FICLONERANGE, request)
        except OSError as problem:
            if problem.errno != errno.EINVAL:  # which is about this part, and not about the file systems
                self._refusing.add((found.st_dev, os.fstat(target).st_dev))
            return None
        if os.fstat(target).st_size > place + length:
            os.ftruncate(target, place + length)
        return os.fstat(target).st_size - place


def read_span(descriptor: int, start: int, length: int) -> bytes:
    """What a file has of a part of it; the position of the descriptor stays where it is."""
    pieces: list[bytes] = []
    while length > 0 and (piece := os.pread(descriptor, length, start)):
        pieces.append(piece)
        start += len(piece)
        length -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def write_span(descriptor: int, start: int, content: bytes) -> None:
    """Put bytes at a place in a file."""
    rest = memoryview(content)
    while rest:
        written = os.pwrite(descriptor, rest, start)
        start += written
        rest = rest[written:]


PIECE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Content:
    """A content by its name, in memory or in a file of the store."""

    digest: str
    held: bytes | Path
    cloner: Reflinker

    def pour(self, target: int, place: int = 0) -> int:
        """Put it at a place in an open file, in any thread; how many bytes. Raises JournalDamaged where it was changed."""
        if isinstance(self.held, bytes):
            size, found = len(self.held), digest_bytes(self.held)
            write_span(target, place, self.held)
        else:
            size, found = self._pour_file(self.held, target, place)
        if found != self.digest:
            raise JournalDamaged(f"the content {self.digest!r} was changed")
        return size

    def _pour_file(self, path: Path, target: int, place: int) -> tuple[int, str]:
        try:
            source = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            raise JournalDamaged(f"the content {self.digest!r} is missing") from None
        whole = hashlib.sha256()
        done = 0
        try:
            size = os.fstat(source).st_size
            may_clone = self.cloner.may_clone(source, os.fstat(target).st_dev)
            is_cloned = may_clone and self.cloner.clone(source, 0, size, target, place) == size
            while piece := os.read(source, PIECE_BYTES):
                whole.update(piece)
                if not is_cloned:
                    write_span(target, place + done, piece)
                done += len(piece)
        finally:
            os.close(source)
        return done, whole.hexdigest()
