"""Standard streams: replace closed ones, and make all three accept any text."""

import io
import os
import shutil
import sys
from typing import TextIO


def repair_std_streams() -> None:
    """Connect closed standard streams to /dev/null, and let undecodable input and unencodable output pass.

    A closed stream frees its descriptor for the next file that is opened, which may be the journal. So descriptors 0 to 2 are
    occupied first.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdin = _repair(sys.stdin, 0, "r", "replace")
    sys.stdout = _repair(sys.stdout, 1, "w", "backslashreplace")
    sys.stderr = _repair(sys.stderr, 2, "w", "backslashreplace")


def discard_output() -> None:
    """Drop pending output, so that Python does not try to write it again at exit."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
    os.close(devnull)


def output_columns(default: int) -> int:
    """The width of COLUMNS, or of the terminal that stdout writes to; `default` where there is neither."""
    return shutil.get_terminal_size((default, 24)).columns


def _repair(stream: TextIO | None, number: int, mode: str, errors: str) -> TextIO:
    if stream is None:
        return io.TextIOWrapper(open(number, f"{mode}b", closefd=False), encoding="utf-8", errors=errors)
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors=errors)
    return stream
