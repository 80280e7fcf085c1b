"""Files that CPython on WASI opens and then writes in the wrong place, or cannot read.

- After a write, `seek(0, SEEK_END)` returns the size of the file, but the next write goes where the last one ended. Files that are
  written therefore move to the end by its position.
- The position of a file opened to append is always its end, so a file opened with `a+` cannot be read. `open` opens it without
  O_APPEND and moves to its end before each write, as the kernel does elsewhere.
"""

import io
import os
from typing import Any

from . import written_files

_lseek = os.lseek


class _PositionedFile(written_files.WrittenFile):
    """A file that is written where its position is, also at its end."""

    def seek(self, offset: Any, whence: Any = os.SEEK_SET, /) -> int:
        if whence == os.SEEK_END and offset == 0:
            offset, whence = os.fstat(self.fileno()).st_size, os.SEEK_SET
        return super().seek(offset, whence)


class _AppendedFile(_PositionedFile):
    """A file that can be read anywhere and is written at its end."""

    mode = "ab+"

    def __init__(self, path: Any) -> None:
        super().__init__(path, "r+", opener=_open_or_create)
        self.seek(0, os.SEEK_END)

    def write(self, content: Any, /) -> int:
        self.seek(0, os.SEEK_END)
        return super().write(content)


def _raw_file(file: Any, mode: str, closefd: bool, opener: Any) -> io.FileIO | None:
    if "a" not in mode:
        return _PositionedFile(file, mode, closefd, opener)
    if "+" not in mode:
        return written_files.WrittenFile(file, mode, closefd, opener)
    is_plain = closefd and opener is None and not isinstance(file, int)
    return _AppendedFile(file) if is_plain else None


def _open_or_create(path: Any, flags: int) -> int:
    return os.open(path, flags | os.O_CREAT, 0o666)


def _move(descriptor: int, position: int, whence: int, /) -> int:
    """`os.lseek`, whose next write is at the end if that is where it moves."""
    if whence == os.SEEK_END and position == 0:
        position, whence = os.fstat(descriptor).st_size, os.SEEK_SET
    return _lseek(descriptor, position, whence)


def install() -> None:
    """Replace `open` and `os.lseek` for all code."""
    written_files.raw_file = _raw_file
    written_files.install()
    os.lseek = _move
