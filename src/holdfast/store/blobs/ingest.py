"""Storing many blobs at once, directly from open files. Each is read and hashed once.

Small blobs become rows, and so do larger ones up to a total size. The others become files, cloned if the file system
supports it (`copy_out`), otherwise copied. A file is a draft until it is synced and gets its name only then, so a file
with a name is complete, even after a power failure.
"""

import ctypes
import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from holdfast.core import Value, digest_bytes
from holdfast.core.errors import StoreUnavailable
from holdfast.store.blobs.copy_out import Reflinker, read_span, write_span
from holdfast.store.blobs.store import MAX_ROW_BYTES, Blobs
from holdfast.store.contract import BlobInfo, Hasher
from holdfast.store.home import private_folder, sync_folder

SMALL_BLOB_BYTES = 8 * 1024
"""Up to this size a blob is always a row: a file would take more disk space than the blob."""
MAX_BATCH_ROW_BYTES = 4 * 1024 * 1024
"""The total size of larger blobs that become rows: a turn that changed a few files costs one commit."""
MAX_SINGLE_SYNCS = 16
"""Up to this many files are synced one by one; syncing a busy file system also waits for the writes of others."""

_DRAFT = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


class BlobRow(Value):
    """The row of a blob; `content` is None if the blob is in a file."""

    digest: str
    size: int
    content: bytes | None


class BlobWriter:
    """Stores blobs from open files, in any thread. `finish` keeps them; `discard` removes them."""

    def __init__(self, blobs: Blobs, reflinker: Reflinker) -> None:
        self._blobs = blobs
        self._reflinker = reflinker
        self._device = os.stat(blobs.folder).st_dev
        self._lock = threading.Lock()
        self._rows: dict[str, BlobRow] = {}
        self._drafts: dict[str, Path] = {}
        self._row_bytes = 0
        self._is_finished = False

    def take(self, descriptor: int, start: int, length: int, *, whole: Hasher | None = None) -> BlobInfo:
        """Store a span of an open file, or what there is of it. Raises OSError if it cannot be read."""
        if length > SMALL_BLOB_BYTES and self._reflinker.may_clone(descriptor, self._device):
            kept = self._cloned(descriptor, start, length, whole)
            if kept is not None:
                return kept
        content = read_span(descriptor, start, length)
        if whole is not None:
            whole.update(content)
        kept = BlobInfo(digest=digest_bytes(content), size=len(content))
        with self._lock:
            is_row = self._is_row(kept.size)
            is_new = self._add_row(kept, content if is_row else None)
        if is_new and not is_row:
            self._write(kept.digest, content)
        return kept

    def receive(self, digest: str, write: Callable[[int], int]) -> None:
        """Store a large blob as a file. `write` gets an open file, writes the whole blob to it and returns its size."""
        with _errors_explained(self._blobs.folder):
            draft, opened = self._draft()
            try:
                size = write(opened)
            except BaseException:
                draft.unlink(missing_ok=True)
                raise
            finally:
                os.close(opened)
        with self._lock:
            is_new = self._add_row(BlobInfo(digest=digest, size=size), None)
        if is_new:
            self._add_draft(digest, draft)
        else:
            draft.unlink(missing_ok=True)

    def finish(self) -> tuple[BlobRow, ...]:
        """Sync every file and give it its name. Returns the rows to insert. Blocking."""
        with self._lock:
            self._is_finished = True
            rows, drafts = tuple(self._rows.values()), self._drafts
        if drafts:
            with _errors_explained(self._blobs.folder):
                self._name(drafts)
        return rows

    def discard(self) -> None:
        """Remove the drafts."""
        with self._lock:
            self._is_finished = True
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
        with _errors_explained(self._blobs.folder):
            draft, opened = self._draft()
            try:
                write_span(opened, 0, content)
            except BaseException:
                draft.unlink(missing_ok=True)
                raise
            finally:
                os.close(opened)
        self._add_draft(digest, draft)

    def _cloned(self, descriptor: int, start: int, length: int, whole: Hasher | None) -> BlobInfo | None:
        with _errors_explained(self._blobs.folder):
            draft, opened = self._draft()
        is_handed_in = False
        try:
            if self._reflinker.clone(descriptor, start, length, opened) is None:
                return None
            # The clone is hashed, not the source, which another process may be changing.
            content = read_span(opened, 0, length)
            kept = BlobInfo(digest=digest_bytes(content), size=len(content))
            with self._lock:
                is_new = self._add_row(kept, None)
            if is_new:
                self._add_draft(kept.digest, draft)
                is_handed_in = True
            if whole is not None:
                whole.update(content)
            return kept
        finally:
            os.close(opened)
            if not is_handed_in:
                draft.unlink(missing_ok=True)

    def _is_row(self, size: int) -> bool:
        return size <= SMALL_BLOB_BYTES or (
            size <= MAX_ROW_BYTES and self._row_bytes + size <= MAX_BATCH_ROW_BYTES
        )

    def _add_row(self, kept: BlobInfo, content: bytes | None) -> bool:
        """Add a blob. Returns whether there is no file for it yet."""
        if kept.digest in self._rows:
            return False
        self._rows[kept.digest] = BlobRow(digest=kept.digest, size=kept.size, content=content)
        self._row_bytes += len(content or b"")
        return not self._blobs.path(kept.digest).exists()

    def _draft(self) -> tuple[Path, int]:
        draft = self._blobs.folder / f".taken-{secrets.token_hex(8)}"
        return draft, os.open(draft, _DRAFT, 0o600)

    def _add_draft(self, digest: str, draft: Path) -> None:
        with self._lock:
            if not self._is_finished:
                self._drafts[digest] = draft
                return
        draft.unlink(missing_ok=True)
        raise StoreUnavailable("storing blobs was already finished or cancelled", hint="try again")


@contextmanager
def _errors_explained(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise StoreUnavailable(
            f"cannot write to {str(folder)!r}: {problem.strerror}", hint="free some disk space and try again"
        ) from problem


def _sync(paths: tuple[Path, ...], folder: Path) -> None:
    """Sync files or folders one by one, or many of them by syncing the whole file system."""
    if len(paths) <= MAX_SINGLE_SYNCS:
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
