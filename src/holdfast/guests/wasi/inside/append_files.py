"""Files that CPython on WASI opens and then writes in the wrong place, or cannot read.

- After a write, `seek(0, SEEK_END)` returns the size of the file, but the next write goes where the last one ended. Files that are
  written therefore move to the end by its position.
- The position of a file opened to append is always its end, so a file opened with `a+` cannot be read. `open` opens it without
  O_APPEND and moves to its end before each write, as the kernel does elsewhere.
"""

import builtins
import io
import os
from itertools import permutations
from typing import Any

from . import written_files

_open = io.open
_lseek = os.lseek


def _modes(*kinds: str) -> frozenset[str]:
    return frozenset(
        "".join(letters) for kind in kinds for more in ("", "b", "t") for letters in permutations(kind + more)
    )


_APPENDS_AND_READS = _modes("a+")
_APPENDS = _modes("a")
_WRITES = _modes("w", "x", "w+", "x+", "r+")


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


def open_file(
    file: Any,
    mode: str = "r",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    closefd: bool = True,
    opener: Any = None,
) -> Any:
    """`open` of CPython, with files that are written where they should be."""
    is_binary = isinstance(mode, str) and "b" in mode
    is_text = not is_binary and buffering != 0
    is_plain = closefd and opener is None and not isinstance(file, int)
    has_text_options = (encoding, errors, newline) != (None, None, None)
    is_valid = is_text or (is_binary and not has_text_options and buffering != 1)
    raw: io.FileIO
    if is_valid and mode in _WRITES:
        raw = _PositionedFile(file, mode.replace("b", "").replace("t", ""), closefd, opener)
    elif is_valid and mode in _APPENDS:
        raw = written_files.WrittenFile(file, "a", closefd, opener)
    elif is_valid and is_plain and mode in _APPENDS_AND_READS:
        raw = _AppendedFile(file)
    else:
        return _open(file, mode, buffering, encoding, errors, newline, closefd, opener)
    try:
        if buffering == 0:
            return written_files.keep(raw)
        size = buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE
        buffered: io.BufferedRandom | io.BufferedWriter
        buffered = io.BufferedRandom(raw, size) if "+" in mode else io.BufferedWriter(raw, size)
        if is_binary:
            return written_files.keep(buffered)
        text = io.TextIOWrapper(buffered, encoding, errors, newline, line_buffering=buffering == 1)
        text.mode = mode  # type: ignore[misc]  # as CPython does
        return written_files.keep(text)
    except BaseException:
        raw.close()
        raise


def _open_or_create(path: Any, flags: int) -> int:
    return os.open(path, flags | os.O_CREAT, 0o666)


def _move(descriptor: int, position: int, whence: int, /) -> int:
    """`os.lseek`, whose next write is at the end if that is where it moves."""
    if whence == os.SEEK_END and position == 0:
        position, whence = os.fstat(descriptor).st_size, os.SEEK_SET
    return _lseek(descriptor, position, whence)


def install() -> None:
    """Replace `open` and `os.lseek` for all code."""
    open_file.__name__ = open_file.__qualname__ = "open"
    builtins.open = io.open = open_file
    os.lseek = _move
