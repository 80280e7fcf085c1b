"""Room in the log: SQLite's log is made larger ahead of what is written to it.

Writing over blocks that a file has takes about half the time on the disk of writing behind its end, where the file
system has to record the new length as well. The log lives as long as a process has the store open and is written over
again and again, so this is needed in the beginning only.
"""

import errno
import os
import sqlite3
from pathlib import Path

from holdfast.store.sqlite.database import CHECKPOINT_PAGES, PAGE_BYTES

STEP_BYTES = 4 * 1024 * 1024
ENOUGH_BYTES = CHECKPOINT_PAGES * PAGE_BYTES
"""About where SQLite begins the log anew."""
SPARE_BYTES = 64 * STEP_BYTES
"""With less on the disk than this, nothing is taken ahead."""
LOOK_EVERY = 16
"""So many jobs make a process worth the while: a short command has fewer."""
LOOK_SELDOM = 256
"""The same when there is room enough, for the log to be moved into the database in time."""


class WalPreallocator:
    """Makes room when it is called after a commit, where the log has outgrown what there was."""

    def __init__(self, database: Path) -> None:
        self._log = Path(f"{database}-wal")
        self._jobs = 0
        self._left_bytes = 0
        self._is_enough = False

    def __call__(self, connection: sqlite3.Connection, jobs: int) -> int:
        """Look now and then, so many jobs after the last time, and add a step where it is needed; when to call again."""
        self._jobs += jobs
        if self._jobs >= LOOK_EVERY and not self._is_enough:
            self._jobs = 0
            self._look(connection)
        return LOOK_SELDOM if self._is_enough else LOOK_EVERY

    def _look(self, connection: sqlite3.Connection) -> None:
        size = self._log.stat().st_size
        if size >= ENOUGH_BYTES:
            self._is_enough = True
        if self._is_enough or size <= self._left_bytes:
            return
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return  # somebody else writes; there will be another time
        try:
            self._left_bytes = self._extend()
        except OSError:
            self._is_enough = True  # what little room there is goes to what is to be recorded
        finally:
            connection.execute("ROLLBACK")

    def _extend(self) -> int:
        # INVARIANT: only with SQLite's lock for writing, so that nobody puts a frame where the zeros go. Unlike the
        # database, the log can be opened beside SQLite: its locks are not on this file.
        descriptor = os.open(self._log, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            end, disk = os.fstat(descriptor).st_size, os.fstatvfs(descriptor)
            if disk.f_bavail * disk.f_frsize < SPARE_BYTES:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.pwrite(descriptor, bytes(STEP_BYTES), end)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return end + STEP_BYTES
