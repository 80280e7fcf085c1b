"""Files opened with `a+`, which CPython on WASI cannot read: there, the position of a file opened to append is always its end.

`open` therefore opens such a file without O_APPEND and moves to its end before each write, as the kernel does elsewhere.
"""

import builtins
import io
import os
from itertools import permutations
from typing import Any

_open = io.open
_MODES = frozenset("".join(letters) for kind in ("a+", "ab+", "at+") for letters in permutations(kind))


class _AppendedFile(io.FileIO):
    """A file that can be read anywhere and is written at its end."""

    mode = "ab+"

    def __init__(self, path: Any) -> None:
        super().__init__(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+")
        self.name = path
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
    """`open` of CPython, with `a+` modes that can be read."""
    is_binary = isinstance(mode, str) and "b" in mode
    is_text = not is_binary and buffering != 0
    is_plain = closefd and opener is None and not isinstance(file, int)
    has_text_options = (encoding, errors, newline) != (None, None, None)
    if mode not in _MODES or not is_plain or not (is_text or (is_binary and not has_text_options)):
        return _open(file, mode, buffering, encoding, errors, newline, closefd, opener)
    raw = _AppendedFile(file)
    try:
        if buffering == 0:
            return raw
        buffered = io.BufferedRandom(raw, buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE)
        if is_binary:
            return buffered
        text = io.TextIOWrapper(buffered, encoding, errors, newline, line_buffering=buffering == 1)
        text.mode = mode  # type: ignore[misc]  # as CPython does
        return text
    except BaseException:
        raw.close()
        raise


def install() -> None:
    """Replace `open` for all code."""
    open_file.__name__ = open_file.__qualname__ = "open"
    builtins.open = io.open = open_file
