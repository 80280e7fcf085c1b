"""A spool: contents on their way between files and the database, in memory while they are few, then in a nameless file."""

import os
import tempfile
import threading
import weakref

from holdfast.core import Value
from holdfast.store.blobs.copy_out import read_span, write_span

MAX_MEMORY_BYTES = 8 * 1024 * 1024


class Span(Value):
    """Where a content is in a spool's file."""

    start: int
    size: int


class Spool:
    """Keeps contents, in any thread. The file has no name and ends with this object."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._in_memory = 0
        self._file: int | None = None
        self._end = 0

    def put(self, content: bytes) -> bytes | Span:
        """Keep a content; returns it, or its place in the file."""
        with self._lock:
            if self._in_memory + len(content) <= MAX_MEMORY_BYTES:
                self._in_memory += len(content)
                return content
            if self._file is None:
                self._file = os.open(tempfile.gettempdir(), os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
                weakref.finalize(self, os.close, self._file)
            start, self._end = self._end, self._end + len(content)
            file = self._file
        write_span(file, start, content)
        return Span(start=start, size=len(content))

    def get(self, kept: bytes | Span) -> bytes:
        """Return a content."""
        if isinstance(kept, bytes):
            return kept
        assert self._file is not None
        return read_span(self._file, kept.start, kept.size)
