"""Files that code has open for writing. The host knows of each, so that it does not keep half a file of a run that dies.

A run that ends well closes what it left open, as CPython does when it exits: what the code wrote must not stay in a buffer.
"""

import io
import itertools
import os
import sys
import weakref
from collections.abc import Callable
from typing import Any

_FOLDERS = ("/workspace/", "/app/")
_UNWOUND = "__holdfast_unwound_files__"
"""The attribute of an exception that names the files which it closed on its way."""

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

    def close(self) -> None:
        try:
            super().close()
        finally:
            number, self._number = self._number, 0
            if number:
                report(number, "")
                if (problem := sys.exception()) is not None:
                    problem.__dict__.setdefault(_UNWOUND, []).append(self._path)


def keep(file: Any) -> Any:
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
    for folder in _FOLDERS:
        if path.startswith(folder):
            return path[len(folder) :]
    return ""
