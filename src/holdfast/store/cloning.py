"""Cloning: a second file over the same blocks of the disk (a reflink), where the file system can; nothing is copied.

Files that share blocks part company when one of them is written to, so a clone is a copy that costs nothing.
"""

import errno
import fcntl
import os
import struct

_FICLONERANGE = 0x4020940D
"""`_IOW(0x94, 13, struct file_clone_range)` of linux/fs.h."""


class Cloner:
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
