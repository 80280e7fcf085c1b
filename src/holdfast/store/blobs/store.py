"""Blobs: contents that events name by their SHA-256. Small ones are rows, large ones files that are on disk first.

References: which contents a set of events mentions, directly or through other contents.

A content is named by its SHA-256 in hex, wherever that stands: in an event, or in another content such as the list of
files of a restore point. So a mention is found without knowing what each of them means.
"""

import os
import re
import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from holdfast.core import Clock, digest_bytes
from holdfast.core.errors import InvalidInput, JournalDamaged, StoreUnavailable
from holdfast.store.home import private_folder, sync_folder, write_private
from holdfast.store.sqlite.database import SQL
from holdfast.store.sqlite.rows import Connection

LARGEST_ROW = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Draft:
    """A content on its way to the disk."""

    digest: str
    content: bytes


class Blobs:
    """Where contents lie."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.folder = folder
        self._clock = clock

    def draft(self, content: bytes) -> Draft:
        """Name a content."""
        return Draft(digest=digest_bytes(content), content=bytes(content))

    def write(self, connection: Connection, draft: Draft) -> None:
        """Keep a content; it is durable with the transaction."""
        is_large = len(draft.content) > LARGEST_ROW
        if is_large:
            self._write_file(draft)
        self.note(connection, draft.digest, len(draft.content), None if is_large else draft.content)

    def note(self, connection: Connection, digest: str, size: int, content: bytes | None) -> bool:
        """Write the row of a content, None where it is in a file on disk; whether the content lies in a file from now on."""
        if content is None and not self.path(digest).exists():
            raise StoreUnavailable("a content was removed while it was being kept", hint="try again")
        row = (bytes.fromhex(digest), size, content, self._clock.now_ms())
        (is_in_file,) = connection.execute(SQL["put_blob"], row).fetchone()
        return bool(is_in_file)

    def read(self, connection: Connection, digest: str) -> bytes:
        """The content with this name, checked. Raises JournalDamaged."""
        held = self.held(connection, digest)
        content = _read_file(held) if isinstance(held, Path) else held
        if content is None:
            raise JournalDamaged(f"the content {digest!r} is missing")
        if digest_bytes(content) != digest.lower():
            raise JournalDamaged(f"the content {digest!r} was changed")
        return content

    def held(self, connection: Connection, digest: str) -> bytes | Path:
        """The content with this name, or the file it lies in, unchecked. Raises JournalDamaged where there is none."""
        try:
            key = bytes.fromhex(digest)
        except ValueError:
            raise InvalidInput(f"{digest!r} is no SHA-256") from None
        row = connection.execute(SQL["get_blob"], (key,)).fetchone()
        if row is None:
            raise JournalDamaged(f"the content {digest!r} is missing")
        return self.path(key.hex()) if row[0] is None else bytes(row[0])

    def path(self, digest: str) -> Path:
        """Where a large content lies."""
        return self.folder / digest[:2] / digest

    def _write_file(self, draft: Draft) -> None:
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
                f"{str(path)!r} cannot be written: {problem.strerror}", hint="make room and try again"
            ) from problem


def _read_file(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


_DIGEST = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")


def digests_in(content: bytes) -> set[str]:
    """What could be names of contents."""
    return {match.decode() for match in _DIGEST.findall(content)}


def mentioned(connection: Connection, blobs: Blobs, bodies: Iterable[bytes]) -> set[str]:
    """The contents that are here and that these events mention."""
    open_ends = set[str]().union(*(digests_in(body) for body in bodies))
    found: set[str] = set()
    while open_ends:
        digest = open_ends.pop()
        if digest in found:
            continue
        try:
            held = blobs.held(connection, digest)
        except JournalDamaged:
            continue
        found.add(digest)
        with suppress(OSError):  # what a lost file mentioned, nobody can tell
            open_ends |= digests_in(held if isinstance(held, bytes) else held.read_bytes()) - found
    return found
