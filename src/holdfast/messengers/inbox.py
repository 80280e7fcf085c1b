"""The inbox of a messenger: what arrived and is not handled yet, one file for each, so that a crash loses nothing."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from holdfast.core import encode
from holdfast.messengers.contract import Incoming
from holdfast.store import private_folder

MAX_ITEMS = 10_000
"""More than this is not accepted; the service keeps it and delivers it again."""


class Inbox:
    """Items in the order of their arrival."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        private_folder(folder)
        self._next = max((int(path.stem) for path in self._files()), default=0) + 1

    def put(self, item: Incoming) -> Path:
        """Keep an item durably. Raises OSError."""
        if sum(1 for _ in self._files()) >= MAX_ITEMS:
            raise OSError(f"more than {MAX_ITEMS} messages wait")
        path = self._folder / f"{self._next:012d}.json"
        self._next += 1
        temporary = path.with_suffix(".tmp")
        with temporary.open("wb") as file:
            file.write(encode(item))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return path

    def remove(self, path: Path) -> None:
        """Forget an item that was handled."""
        path.unlink(missing_ok=True)

    def items(self) -> list[tuple[Path, Incoming]]:
        """Everything that is not handled yet, oldest first. A file that cannot be read is left out."""
        found: list[tuple[Path, Incoming]] = []
        for path in sorted(self._files()):
            with suppress(OSError, ValueError, RecursionError):
                found.append((path, msgspec.json.decode(path.read_bytes(), type=Incoming)))
        return found

    def _files(self) -> Iterator[Path]:
        return (path for path in self._folder.glob("*.json") if path.stem.isdecimal())
