"""A content of the store on its way out into an open file: cloned where the file system can, else copied; checked."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from holdfast.core import digest_bytes
from holdfast.core.errors import JournalDamaged
from holdfast.store.cloning import Cloner
from holdfast.store.spans import write_span

PIECE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Content:
    """A content by its name, in memory or in a file of the store."""

    digest: str
    held: bytes | Path
    cloner: Cloner

    def pour(self, target: int, place: int = 0) -> int:
        """Put it at a place in an open file, in any thread; how many bytes. Raises JournalDamaged where it was changed."""
        if isinstance(self.held, bytes):
            size, found = len(self.held), digest_bytes(self.held)
            write_span(target, place, self.held)
        else:
            size, found = self._pour_file(self.held, target, place)
        if found != self.digest:
            raise JournalDamaged(f"the content {self.digest!r} was changed")
        return size

    def _pour_file(self, path: Path, target: int, place: int) -> tuple[int, str]:
        try:
            source = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            raise JournalDamaged(f"the content {self.digest!r} is missing") from None
        whole = hashlib.sha256()
        done = 0
        try:
            size = os.fstat(source).st_size
            may_clone = self.cloner.may_clone(source, os.fstat(target).st_dev)
            is_cloned = may_clone and self.cloner.clone(source, 0, size, target, place) == size
            while piece := os.read(source, PIECE_BYTES):
                whole.update(piece)
                if not is_cloned:
                    write_span(target, place + done, piece)
                done += len(piece)
        finally:
            os.close(source)
        return done, whole.hexdigest()
