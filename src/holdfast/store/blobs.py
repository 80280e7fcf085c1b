"""Blobs: contents that events name by their SHA-256. Small ones are rows, large ones files that are on disk first."""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from holdfast.core import Clock, digest_bytes
from holdfast.core.errors import InvalidInput, JournalDamaged, StoreUnavailable
from holdfast.store.database import SQL
from holdfast.store.home import private_folder, sync_folder, write_private
from holdfast.store.rows import Connection

LARGEST_ROW = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Draft:
    """A content on its way to the disk."""

    digest: str
    content: bytes


class Blobs:
    """Where contents lie."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock

    def draft(self, content: bytes) -> Draft:
        """Name a content."""
        return Draft(digest=digest_bytes(content), content=bytes(content))

    def write(self, connection: Connection, draft: Draft) -> None:
        """Keep a content; it is durable with the transaction."""
        is_large = len(draft.content) > LARGEST_ROW
        if is_large:
            self._write_file(draft)
        row = (bytes.fromhex(draft.digest), len(draft.content), None if is_large else draft.content)
        connection.execute(SQL["put_blob"], (*row, self._clock.now_ms()))

    def read(self, connection: Connection, digest: str) -> bytes:
        """The content with this name, checked. Raises JournalDamaged."""
        try:
            key = bytes.fromhex(digest)
        except ValueError:
            raise InvalidInput(f"{digest!r} is no SHA-256") from None
        row = connection.execute(SQL["get_blob"], (key,)).fetchone()
        content = None if row is None else row[0] if row[0] is not None else self._read_file(key.hex())
        if content is None:
            raise JournalDamaged(f"the content {digest!r} is missing")
        if digest_bytes(content) != key.hex():
            raise JournalDamaged(f"the content {digest!r} was changed")
        return bytes(content)

    def path(self, digest: str) -> Path:
        """Where a large content lies."""
        return self._folder / digest[:2] / digest

    def _write_file(self, draft: Draft) -> None:
        path = self.path(draft.digest)
        if path.exists() and path.stat().st_size == len(draft.content):
            return
        temporary = self._folder / f".{draft.digest[:16]}-{secrets.token_hex(4)}"
        try:
            private_folder(path.parent)
            write_private(temporary, draft.content)
            os.replace(temporary, path)
            sync_folder(path.parent)
            sync_folder(self._folder)
        except OSError as problem:
            temporary.unlink(missing_ok=True)
            raise StoreUnavailable(
                f"{str(path)!r} cannot be written: {problem.strerror}", hint="make room and try again"
            ) from problem

    def _read_file(self, digest: str) -> bytes | None:
        try:
            return self.path(digest).read_bytes()
        except FileNotFoundError:
            return None
