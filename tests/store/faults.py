"""Fault injection at the system call boundary: the real SQLite and real system calls, one of which fails or kills."""

import errno
import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Fault = Callable[[], None]
"""Runs instead of a step, or after it."""


class Steps:
    """Counts the steps towards the disk and triggers a fault at one of them."""

    def __init__(self, at: int, fault: Fault, *, is_after: bool) -> None:
        self.taken = 0
        self._at = at
        self._fault = fault
        self._is_after = is_after

    def take(self, step: Callable[[], Any]) -> Any:
        self.taken += 1
        if self.taken != self._at:
            return step()
        if self._is_after:
            step()
        return self._fault()


@contextmanager
def faulty(steps: Steps) -> Iterator[None]:
    """Count every writing statement of SQLite and every write, sync, link and rename as a step."""
    connect, calls = (
        sqlite3.connect,
        {name: getattr(os, name) for name in ("write", "fsync", "replace", "link")},
    )

    class Connection(sqlite3.Connection):
        def execute(self, sql: str, *rest: Any) -> Any:
            word = sql.split(None, 1)[0].upper()
            if sql == "BEGIN" or word in ("SELECT", "PRAGMA", "ROLLBACK", "CREATE"):
                return super().execute(sql, *rest)
            return steps.take(lambda: super(Connection, self).execute(sql, *rest))

        def executemany(self, sql: str, *rest: Any) -> Any:
            return steps.take(lambda: super(Connection, self).executemany(sql, *rest))

    def wrapped(name: str) -> Callable[..., Any]:
        return lambda *args, **kwargs: steps.take(lambda: calls[name](*args, **kwargs))

    sqlite3.connect = lambda *args, **kwargs: connect(*args, **(kwargs | {"factory": Connection}))
    for name in calls:
        setattr(os, name, wrapped(name))
    try:
        yield
    finally:
        sqlite3.connect = connect
        for name, call in calls.items():
            setattr(os, name, call)


def disk_full() -> None:
    _raise(sqlite3.SQLITE_FULL, errno.ENOSPC)


def disk_broken() -> None:
    _raise(sqlite3.SQLITE_IOERR, errno.EIO)


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DiskError(sqlite3.OperationalError, OSError):
    """The error as SQLite and as the system report it."""


def _raise(code: int, number: int) -> None:
    problem = DiskError(number, os.strerror(number))
    problem.sqlite_errorcode = code
    raise problem
