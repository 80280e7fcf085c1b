"""Preallocation of SQLite's write-ahead log: the file is extended ahead of the writes.

Overwriting existing blocks takes a disk about half as long as extending a file, whose new length must be recorded as
well. The log exists as long as a process has the store open and is overwritten again and again, so this is needed only
in the beginning.
"""

import errno
import os
import sqlite3
from pathlib import Path

from holdfast.store.sqlite.database import CHECKPOINT_PAGES, PAGE_BYTES

STEP_BYTES = 4 * 1024 * 1024
TARGET_BYTES = CHECKPOINT_PAGES * PAGE_BYTES
"""About where SQLite restarts the log."""
MIN_FREE_BYTES = 64 * STEP_BYTES
"""With less free disk space, nothing is preallocated."""
CHECK_INTERVAL_JOBS = 16
"""Check after this many jobs; a short command has fewer and is not worth it."""
IDLE_INTERVAL_JOBS = 256
"""The interval after preallocation has finished, so that the log is checkpointed in time."""


class WalPreallocator:
    """Extends the log after a commit if it has outgrown the preallocated size."""

    def __init__(self, database: Path) -> None:
        self._log = Path(f"{database}-wal")
        self._jobs = 0
        self._allocated_bytes = 0
        self._is_finished = False

    def __call__(self, connection: sqlite3.Connection, jobs: int) -> int:
        """Count jobs, check the log now and then, and return after how many jobs to call again."""
        self._jobs += jobs
        if self._jobs >= CHECK_INTERVAL_JOBS and not self._is_finished:
            self._jobs = 0
            self._check(connection)
        return IDLE_INTERVAL_JOBS if self._is_finished else CHECK_INTERVAL_JOBS

    def _check(self, connection: sqlite3.Connection) -> None:
        size = self._log.stat().st_size
        if size >= TARGET_BYTES:
            self._is_finished = True
        if self._is_finished or size <= self._allocated_bytes:
            return
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return  # another process is writing; try again later
        try:
            self._allocated_bytes = self._extend()
        except OSError:
            self._is_finished = True  # leave the little free space for events
        finally:
            connection.execute("ROLLBACK")

    def _extend(self) -> int:
        # INVARIANT: only while holding SQLite's write lock, so that no process writes a frame where the zeros go. Unlike
        # the database, the log can be opened outside SQLite, whose locks are not on this file.
        descriptor = os.open(self._log, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            end, disk = os.fstat(descriptor).st_size, os.fstatvfs(descriptor)
            if disk.f_bavail * disk.f_frsize < MIN_FREE_BYTES:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.pwrite(descriptor, bytes(STEP_BYTES), end)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return end + STEP_BYTES
