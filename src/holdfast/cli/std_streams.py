"""The three standard streams as the commands want them: all there, and able to carry any text."""

import io
import os
import shutil
import sys
from typing import TextIO


def repair_std_streams() -> None:
    """Put nothing in the place of a stream that was closed, and let no byte and no letter stop a command.

    A closed stream also leaves its number to the next file that is opened, which may be the journal; so the numbers are
    taken first.
    """
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdin = _repair(sys.stdin, 0, "r", "replace")
    sys.stdout = _repair(sys.stdout, 1, "w", "backslashreplace")
    sys.stderr = _repair(sys.stderr, 2, "w", "backslashreplace")


def discard_output() -> None:
    """Drop what could not be written: it must not be tried again when Python ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def output_columns(otherwise: int) -> int:
    """How wide the terminal is that stdout goes to, whatever the other streams are; `otherwise` where it goes elsewhere."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else otherwise


def _repair(stream: TextIO | None, number: int, mode: str, errors: str) -> TextIO:
    if stream is None:
        return io.TextIOWrapper(open(number, f"{mode}b", closefd=False), encoding="utf-8", errors=errors)
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors=errors)
    return stream
