"""The levels of contents that sessions wrote into files, by digest: a stranger's words stay a stranger's in another session.

A file of lines, shared by all sessions of a data directory and only ever appended to. Rename and copy keep a content's digest.
"""

import os
from pathlib import Path
from typing import Protocol

import msgspec

from holdfast.core import Level, Value, lowest

MAX_BYTES = 64 << 20
"""Of the file; beyond it, every file of the workspace counts as a stranger's."""


class FileLabel(Value):
    """One line: the content with this digest has this level."""

    digest: str
    level: Level


class FileLabels(Protocol):
    """Remembers the levels of contents."""

    def get(self, digest: str) -> Level | None:
        """The level of a content; None if no session wrote it."""
        ...

    def add(self, digest: str, level: Level) -> None:
        """Remember a content that is not the person's own."""
        ...

    def lowest(self) -> Level:
        """The lowest level of any content."""
        ...


class MemoryFileLabels:
    """Of one session alone."""

    def __init__(self) -> None:
        self._levels: dict[str, Level] = {}

    def get(self, digest: str) -> Level | None:
        return self._levels.get(digest)

    def add(self, digest: str, level: Level) -> None:
        self._levels[digest] = lowest(level, self._levels.get(digest, "own"))

    def lowest(self) -> Level:
        return lowest(*self._levels.values())


class SharedFileLabels:
    """Of all sessions of a data directory. What other processes add is seen at the next look."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._levels = MemoryFileLabels()
        self._read_to = 0
        self._is_readable = True

    def get(self, digest: str) -> Level | None:
        self._read_new()
        return self._levels.get(digest) if self._is_readable else "stranger"

    def add(self, digest: str, level: Level) -> None:
        self._read_new()
        known = self._levels.get(digest)
        if known is not None and lowest(known, level) == known:
            return
        self._levels.add(digest, level)
        line = msgspec.json.encode(FileLabel(digest=digest, level=level)) + b"\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, line)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def lowest(self) -> Level:
        self._read_new()
        return self._levels.lowest() if self._is_readable else "stranger"

    def _read_new(self) -> None:
        try:
            size = self._path.stat().st_size
            if size == self._read_to:
                return
            if size > MAX_BYTES:
                self._is_readable = False
                return
            with self._path.open("rb") as file:
                file.seek(self._read_to)
                data = file.read()
        except FileNotFoundError:
            return
        except OSError:
            self._is_readable = False
            return
        whole = data[: data.rfind(b"\n") + 1]
        self._read_to += len(whole)
        for line in whole.splitlines():
            try:
                label = msgspec.json.decode(line, type=FileLabel)
            except msgspec.DecodeError:
                self._is_readable = False  # what was remembered is unknown, so nothing is the person's own
                return
            self._levels.add(label.digest, label.level)
