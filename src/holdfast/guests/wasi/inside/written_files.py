"""Files that code has open for writing. The host knows of each, so that it does not keep half a file of a run that dies.

A run that ends well closes what it left open, as CPython does when it exits: what the code wrote must not stay in a buffer.
"""

import builtins
import io
import itertools
import os
import sys
import weakref
from collections.abc import Callable
from itertools import permutations
from typing import Any

folders: tuple[str, ...] = ("/workspace/", "/app/")
"""Where the files are that the host keeps, as the sandbox sees them."""
_UNWOUND = "__holdfast_unwound_files__"
"""The attribute of an exception that names the files which it closed on its way."""
_OPENED = "__holdfast_opened_files__"
"""The attribute of an exception with the numbers of the files that code opened while it handled it: it does not cut those off."""

_open = io.open

_numbers = itertools.count(1)
_left_open: weakref.WeakSet[io.IOBase] = weakref.WeakSet()


def _report_nowhere(number: int, path: str) -> None:
    pass


report: Callable[[int, str], None] = _report_nowhere
"""Tells the host that file `number` is being written at `path`, or with an empty path that it was closed."""


class WrittenFile(io.FileIO):
    """A file that the host knows of until it is closed."""

    _number = 0
    _path = ""

    def __init__(self, file: Any, mode: str, closefd: bool = True, opener: Any = None) -> None:
        super().__init__(file, mode, closefd, opener)
        self._path = "" if isinstance(file, int) else _path_in_workspace(file)
        if self._path:
            self._number = next(_numbers)
            report(self._number, self._path)
            if (handled := sys.exception()) is not None:
                handled.__dict__.setdefault(_OPENED, set()).add(self._number)

    def close(self) -> None:
        try:
            super().close()
        finally:
            number, self._number = self._number, 0
            if number:
                report(number, "")
                problem = sys.exception()
                if problem is not None and number not in problem.__dict__.get(_OPENED, ()):
                    problem.__dict__.setdefault(_UNWOUND, []).append(self._path)


def _workspace_file(file: Any, mode: str, closefd: bool, opener: Any) -> io.FileIO | None:
    is_in_workspace = not isinstance(file, int) and bool(_path_in_workspace(file))
    return WrittenFile(file, mode, closefd, opener) if is_in_workspace else None


raw_file: Callable[[Any, str, bool, Any], io.FileIO | None] = _workspace_file
"""Opens a file to write it, from path, plain mode, `closefd` and `opener`. None leaves it to CPython."""


def _modes(*kinds: str) -> frozenset[str]:
    return frozenset(
        "".join(letters) for kind in kinds for more in ("", "b", "t") for letters in permutations(kind + more)
    )


_WRITES = _modes("w", "x", "a", "w+", "x+", "a+", "r+")


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
    """`open` of CPython. The host knows of the files that are written."""
    is_binary = isinstance(mode, str) and "b" in mode
    is_text = not is_binary and buffering != 0
    has_text_options = (encoding, errors, newline) != (None, None, None)
    is_valid = is_text or (is_binary and not has_text_options and buffering != 1)
    is_written = is_valid and mode in _WRITES
    raw = raw_file(file, mode.replace("b", "").replace("t", ""), closefd, opener) if is_written else None
    if raw is None:
        return _open(file, mode, buffering, encoding, errors, newline, closefd, opener)
    try:
        if buffering == 0:
            return _keep(raw)
        size = buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE
        buffered: io.BufferedRandom | io.BufferedWriter
        buffered = io.BufferedRandom(raw, size) if "+" in mode else io.BufferedWriter(raw, size)
        if is_binary:
            return _keep(buffered)
        text = io.TextIOWrapper(buffered, encoding, errors, newline, line_buffering=buffering == 1)
        text.mode = mode  # type: ignore[misc]  # as CPython does
        return _keep(text)
    except BaseException:
        raw.close()
        raise


def install() -> None:
    """Replace `open` for all code."""
    open_file.__name__ = "open"  # a saved variable refers to it by its qualified name
    builtins.open = io.open = open_file


def _keep(file: Any) -> Any:
    """Close this file at the end of the run, unless the code does. Returns it."""
    _left_open.add(file)
    return file


def finish(problem: BaseException | None) -> None:
    """Close what the run left open. If it died of `problem`, report these files, and those that the problem closed, as unfinished."""
    unfinished = [] if problem is None else list(problem.__dict__.pop(_UNWOUND, ()))
    for file in list(_left_open):
        raw: Any = file
        while (inner := getattr(raw, "buffer", None) or getattr(raw, "raw", None)) is not None:
            raw = inner
        path = raw._path if isinstance(raw, WrittenFile) and not raw.closed else ""
        try:
            file.close()
            is_whole = problem is None
        except Exception:  # the disk may be full, and the encoder may be the code's own
            is_whole = False
        if path and not is_whole:
            unfinished.append(path)
    _left_open.clear()
    for path in unfinished:
        report(next(_numbers), path)


def _path_in_workspace(file: Any) -> str:
    path = os.path.abspath(os.fsdecode(file))
    for folder in folders:
        if path.startswith(folder):
            return path[len(folder) :]
    return ""
