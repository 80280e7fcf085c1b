"""Many contents on their way into the store at once, straight from open files: each is read and hashed once.

Small contents become rows, and so do those that come few at a time; the others become files, cloned where the file
system can (`cloning`), else copied. Files are drafts until they are on disk, all of them by one sync; only then do they
get their names. So a content that has its name is whole, whenever the power fails.
"""

import ctypes
import os
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from holdfast.core import Value, digest_bytes
from holdfast.core.errors import StoreUnavailable
from holdfast.store.blobs.copy_out import Reflinker, read_span, write_span
from holdfast.store.blobs.store import LARGEST_ROW, Blobs
from holdfast.store.contract import Hasher, Kept
from holdfast.store.home import private_folder, sync_folder

SMALL_ROW = 8 * 1024
"""Up to here a content is always a row: a file would take more of the disk than it holds."""
ROWS_TOGETHER = 4 * 1024 * 1024
"""So much goes into rows before larger contents become files: a turn that changed a few files costs one commit."""
SINGLE_SYNCS = 16
"""Up to so many files are made durable one by one; flushing a busy file system whole takes as long as others wrote."""

_DRAFT = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


class Row(Value):
    """A content as the database has it; None lies in a file."""

    digest: str
    size: int
    content: bytes | None


class BlobWriter:
    """Takes contents from open files, in any thread. They count from `settle` on; `abandon` leaves no trace."""

    def __init__(self, blobs: Blobs, cloner: Reflinker) -> None:
        self._blobs = blobs
        self._cloner = cloner
        self._device = os.stat(blobs.folder).st_dev
        self._lock = threading.Lock()
        self._rows: dict[str, Row] = {}
        self._drafts: dict[str, Path] = {}
        self._row_bytes = 0
        self._is_over = False

    def take(self, descriptor: int, start: int, length: int, *, whole: Hasher | None = None) -> Kept:
        """Take a part of an open file, or as much of it as there is. Raises OSError where it cannot be read."""
        if length > SMALL_ROW and self._cloner.may_clone(descriptor, self._device):
            kept = self._cloned(descriptor, start, length, whole)
            if kept is not None:
                return kept
        content = read_span(descriptor, start, length)
        if whole is not None:
            whole.update(content)
        kept = Kept(digest=digest_bytes(content), size=len(content))
        with self._lock:
            is_row = self._is_row(kept.size)
            is_new = self._note(kept, content if is_row else None)
        if is_new and not is_row:
            self._write(kept.digest, content)
        return kept

    def settle(self) -> tuple[Row, ...]:
        """Make every file durable under its name; the rows that are to be written now. Blocks."""
        with self._lock:
            self._is_over = True
            rows, drafts = tuple(self._rows.values()), self._drafts
        if drafts:
            with _explained(self._blobs.folder):
                self._name(drafts)
        return rows

    def abandon(self) -> None:
        """Remove what was taken and has no name yet."""
        with self._lock:
            self._is_over = True
            drafts, self._drafts = self._drafts, {}
        for draft in drafts.values():
            draft.unlink(missing_ok=True)

    def _name(self, drafts: Mapping[str, Path]) -> None:
        _sync(tuple(drafts.values()), self._blobs.folder)
        folders = {self._blobs.path(digest).parent for digest in drafts}
        for folder in folders:
            private_folder(folder)
        for digest, draft in drafts.items():
            os.replace(draft, self._blobs.path(digest))
        _sync((*folders, self._blobs.folder), self._blobs.folder)

    def _write(self, digest: str, content: bytes) -> None:
        with _explained(self._blobs.folder):
            draft, opened = self._draft()
            try:
                write_span(opened, 0, content)
            except BaseException:
                draft.unlink(missing_ok=True)
                raise
            finally:
                os.close(opened)
        self._hand_in(digest, draft)

    def _cloned(self, descriptor: int, start: int, length: int, whole: Hasher | None) -> Kept | None:
        with _explained(self._blobs.folder):
            draft, opened = self._draft()
        is_handed_in = False
        try:
            if self._cloner.clone(descriptor, start, length, opened) is None:
                return None
            # The clone is hashed and not the source, which somebody may be writing to.
            content = read_span(opened, 0, length)
            kept = Kept(digest=digest_bytes(content), size=len(content))
            with self._lock:
                is_new = self._note(kept, None)
            if is_new:
                self._hand_in(kept.digest, draft)
                is_handed_in = True
            if whole is not None:
                whole.update(content)
            return kept
        finally:
            os.close(opened)
            if not is_handed_in:
                draft.unlink(missing_ok=True)

    def _is_row(self, size: int) -> bool:
        return size <= SMALL_ROW or (size <= LARGEST_ROW and self._row_bytes + size <= ROWS_TOGETHER)

    def _note(self, kept: Kept, content: bytes | None) -> bool:
        """Remember a content; whether it still has to be put into a file, or would have to."""
        if kept.digest in self._rows:
            return False
        self._rows[kept.digest] = Row(digest=kept.digest, size=kept.size, content=content)
        self._row_bytes += len(content or b"")
        return not self._blobs.path(kept.digest).exists()

    def _draft(self) -> tuple[Path, int]:
        draft = self._blobs.folder / f".taken-{secrets.token_hex(8)}"
        return draft, os.open(draft, _DRAFT, 0o600)

    def _hand_in(self, digest: str, draft: Path) -> None:
        with self._lock:
            if not self._is_over:
                self._drafts[digest] = draft
                return
        draft.unlink(missing_ok=True)
        raise StoreUnavailable("the intake of contents was ended", hint="try again")


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise StoreUnavailable(
            f"nothing can be kept in {str(folder)!r}: {problem.strerror}", hint="make room and try again"
        ) from problem


def _sync(paths: tuple[Path, ...], folder: Path) -> None:
    """Make files or folders durable: one by one, or where they are many, their whole file system in one go."""
    if len(paths) <= SINGLE_SYNCS:
        for path in paths:
            _sync_file(path)
        return
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if ctypes.CDLL(None, use_errno=True).syncfs(opened) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
    finally:
        os.close(opened)


def _sync_file(path: Path) -> None:
    if path.is_dir():
        sync_folder(path)
        return
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
