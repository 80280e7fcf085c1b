"""The blobs of the SQLite store. Small blobs are rows; large ones are files, which are durable before their row."""

import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from holdfast.core import Clock, Value, digest_bytes
from holdfast.core.errors import InvalidInput, JournalDamaged, StoreUnavailable
from holdfast.store.blobs.references import digests_in
from holdfast.store.home import private_folder, sync_folder, write_private
from holdfast.store.sqlite.database import SQL
from holdfast.store.sqlite.rows import Connection

MAX_ROW_BYTES = 1024 * 1024


class NewBlob(Value):
    """A blob that is about to be written."""

    digest: str
    content: bytes


class Blobs:
    """Reads and writes blobs."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.folder = folder
        self._clock = clock

    def draft(self, content: bytes) -> NewBlob:
        """Hash a blob."""
        return NewBlob(digest=digest_bytes(content), content=bytes(content))

    def write(self, connection: Connection, draft: NewBlob) -> None:
        """Write a blob; it becomes durable with the transaction."""
        is_large = len(draft.content) > MAX_ROW_BYTES
        if is_large:
            self._write_file(draft)
        self.insert_row(connection, draft.digest, len(draft.content), None if is_large else draft.content)

    def insert_row(self, connection: Connection, digest: str, size: int, content: bytes | None) -> bool:
        """Insert the row of a blob; `content` is None if it is in a file. Returns whether the stored blob is in a file."""
        if content is None and not self.path(digest).exists():
            raise StoreUnavailable(
                f"the blob {digest!r} was removed while it was being stored", hint="try again"
            )
        row = (bytes.fromhex(digest), size, content, self._clock.now_ms())
        (is_in_file,) = connection.execute(SQL["put_blob"], row).fetchone()
        return bool(is_in_file)

    def read(self, connection: Connection, digest: str) -> bytes:
        """Read a blob and verify it. Raises JournalDamaged."""
        held = self.locate(connection, digest)
        content = _read_file(held) if isinstance(held, Path) else held
        if content is None:
            raise JournalDamaged(f"the blob {digest!r} is missing")
        if digest_bytes(content) != digest.lower():
            raise JournalDamaged(f"the blob {digest!r} was changed")
        return content

    def locate(self, connection: Connection, digest: str) -> bytes | Path:
        """Return a blob or the path of its file, unverified. Raises JournalDamaged if there is none."""
        try:
            key = bytes.fromhex(digest)
        except ValueError:
            raise InvalidInput(f"{digest!r} is not a SHA-256") from None
        row = connection.execute(SQL["get_blob"], (key,)).fetchone()
        if row is None:
            raise JournalDamaged(f"the blob {digest!r} is missing")
        return self.path(key.hex()) if row[0] is None else bytes(row[0])

    def path(self, digest: str) -> Path:
        """The file of a large blob."""
        return self.folder / digest[:2] / digest

    def _write_file(self, draft: NewBlob) -> None:
        path = self.path(draft.digest)
        if path.exists() and path.stat().st_size == len(draft.content):
            return
        temporary = self.folder / f".{draft.digest[:16]}-{secrets.token_hex(4)}"
        try:
            private_folder(path.parent)
            write_private(temporary, draft.content)
            os.replace(temporary, path)
            sync_folder(path.parent)
            sync_folder(self.folder)
        except OSError as problem:
            temporary.unlink(missing_ok=True)
            raise StoreUnavailable(
                f"{str(path)!r} cannot be written: {problem.strerror}",
                hint="free some disk space and try again",
            ) from problem


def _read_file(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def referenced_blobs(connection: Connection, blobs: Blobs, bodies: Iterable[bytes]) -> set[str]:
    """Find the stored blobs that these events refer to, directly or through other blobs."""
    open_ends = set[str]().union(*(digests_in(body) for body in bodies))
    found: set[str] = set()
    while open_ends:
        digest = open_ends.pop()
        if digest in found:
            continue
        try:
            held = blobs.locate(connection, digest)
        except JournalDamaged:
            continue
        found.add(digest)
        with suppress(OSError):  # the references in a lost file are unknown
            open_ends |= digests_in(held if isinstance(held, bytes) else held.read_bytes()) - found
    return found
