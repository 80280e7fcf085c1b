"""The write connection of a process, and how a group of jobs becomes one commit."""

import asyncio
import random
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar

import holdfast.store.sqlite.database as database
from holdfast.core.errors import HoldfastError, StoreUnavailable

Result = TypeVar("Result")
LOCK_TIMEOUT_SECONDS = database.LOCK_TIMEOUT_SECONDS
MAX_PAUSE_SECONDS = 0.001
MAX_GROUP_SIZE = 512
FAST_COMMIT_SECONDS = 0.002
"""An event loop can block this long without noticeable effect."""


class Transaction:
    """What the jobs of one group share: the connection, and the steps before and after the commit."""

    def __init__(self, connection: sqlite3.Connection, *, failures: int = 0) -> None:
        self.failures = failures
        """How often the disk has failed so far. State cached before the last failure may differ from what is on disk."""
        self.execute = connection.execute
        self.executemany = connection.executemany
        self.staged: dict[object, Any] = {}
        """Values that take effect with the commit, by owner."""
        self.granted: set[tuple[str, int]] = set()
        """The leases that earlier jobs of the group were granted, by session and number. They take effect with the commit."""
        self.moved: set[str] = set()
        """Sessions with activity, which move to the top of the list."""
        self.before_commit: list[Callable[[], None]] = []
        self.after_commit: list[Callable[[], None]] = []


Work = Callable[[Transaction], Result]


@dataclass(slots=True, eq=False)
class Job(Generic[Result]):
    """A write, its requester and its result."""

    work: Work[Result]
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[Result]"
    on_committed: Callable[[Result], None] | None
    may_run_inline: bool
    result: Result | None = None
    problem: BaseException | None = None


Identify = Callable[[], object]
"""Identifies the file at the path of the database."""

Arrivals = Callable[[], Job[Any] | None]
"""Takes the next waiting job; None if there is none."""


def _no_arrivals() -> None:
    """No job waits."""


class WriteConnection:
    """Commits groups of jobs. Used by one thread at a time."""

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        explain: Callable[[sqlite3.Error | OSError], HoldfastError],
        identify: Identify,
    ) -> None:
        self._connect = connect
        self._explain = explain
        self._identify = identify
        self._file: object = None
        """The database file at the first commit; it must not change."""
        self._connection: sqlite3.Connection | None = None
        self._failures = 0
        self._may_checkpoint = True
        self.is_fast = False
        """Whether the last commit was fast, including the wait for other processes."""

    def commit_group(
        self, group: list[Job[Any]], arrivals: Arrivals = _no_arrivals, *, is_retry: bool = False
    ) -> None:
        """Run and commit a group, however long it takes; jobs that arrive in the meantime join it.

        Afterwards each job has its result or its problem.
        """
        try:
            self._attempt_until_free(group, arrivals)
        except Exception as problem:
            self._rollback(problem)
            if _is_busy(problem):
                # No transaction was started. Jobs that arrived in the meantime have waited as well and fail too.
                group.extend(iter(arrivals, None))
                for job in group:
                    job.problem = self._explained(problem)
            elif len(group) > 1:
                # The failure of one job must not affect the others: each gets its own transaction.
                for job in group:
                    self.commit_group([job])
            elif isinstance(problem, sqlite3.Error) and not is_retry:
                # A commit that failed may still be on disk. The second attempt finds out.
                self.commit_group(group, is_retry=True)
            else:
                (job,) = group
                job.problem = self._explained(problem)

    def _attempt_until_free(self, group: list[Job[Any]], arrivals: Arrivals) -> None:
        """Opening a connection can be busy for a moment too, and unlike `_begin` that does not wait by itself."""
        started = time.perf_counter()
        while True:
            try:
                self._attempt(group, arrivals, may_wait=True)
                return
            except sqlite3.OperationalError as problem:
                is_late = time.perf_counter() - started > LOCK_TIMEOUT_SECONDS
                if is_late or not _is_busy(problem):
                    raise
                self._rollback(problem)
                time.sleep(MAX_PAUSE_SECONDS)

    def try_commit_inline(self, group: list[Job[Any]]) -> bool:
        """Commit a group without waiting for anything. If it fails, `commit_group` finds out what is on disk."""
        try:
            self._attempt(group, _no_arrivals, may_wait=False)
        except BaseException as problem:
            self.is_fast = False
            if not _is_busy(problem):
                self._rollback(problem)
            if not isinstance(problem, Exception):
                raise
            return False
        return True

    def maintain(self, maintenance: Callable[[sqlite3.Connection], None]) -> None:
        """Run maintenance that makes later commits cheaper."""
        if self._connection is None:
            return
        try:
            maintenance(self._connection)
        except (sqlite3.Error, OSError) as problem:
            self._rollback(problem)

    def disconnect(self) -> None:
        """Close the connection; the next job opens a new one."""
        self.is_fast = False
        if self._connection is not None:
            try:
                self._connection.close()
            finally:
                self._connection = None

    def _attempt(self, group: list[Job[Any]], arrivals: Arrivals, *, may_wait: bool) -> None:
        if self._connection is None:
            self._check_file()  # before a new connection creates an empty database
            self._connection = self._connect()
            self._may_checkpoint = True
        connection = self._connection
        self._allow_checkpoint(connection, may_wait)
        transaction = Transaction(connection, failures=self._failures)
        waited = self._begin(connection, may_wait=may_wait)
        for job in group:
            job.problem = None
            try:
                job.result = job.work(transaction)
            except HoldfastError as refusal:
                job.problem = refusal
            if may_wait and job is group[-1] and len(group) < MAX_GROUP_SIZE:
                group.extend(islice(iter(arrivals, None), MAX_GROUP_SIZE - len(group)))
        for step in transaction.before_commit:
            step()
        started = time.perf_counter()
        connection.execute("COMMIT")
        self.is_fast = waited + time.perf_counter() - started < FAST_COMMIT_SECONDS
        self._file = self._file or self._identify()
        self._check_file()
        for step in transaction.after_commit:
            try:
                step()
            except OSError:
                continue  # a file that cannot be removed must not repeat the committed job

    def _check_file(self) -> None:
        """Raise StoreUnavailable if the database file was removed or replaced."""
        if self._file is not None and self._identify() != self._file:
            raise StoreUnavailable(
                "the database was removed or replaced while this process had it open, so nothing can be recorded",
                hint="end every Holdfast process and start again: it salvages what can be read",
            )

    def _allow_checkpoint(self, connection: sqlite3.Connection, is_allowed: bool) -> None:
        """Set whether a commit can trigger a checkpoint of the log, which takes a while."""
        if self._may_checkpoint != is_allowed:
            pages = database.CHECKPOINT_PAGES if is_allowed else 0
            connection.execute(f"PRAGMA wal_autocheckpoint = {pages}")
            self._may_checkpoint = is_allowed

    def _begin(self, connection: sqlite3.Connection, *, may_wait: bool) -> float:
        """Begin a transaction, and return how many seconds another process kept us waiting."""
        # SQLite's own busy handler sleeps up to 100 ms at a time. A commit takes about 1 ms, so we retry sooner.
        started = time.perf_counter()
        pause = 0.0001
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return time.perf_counter() - started
            except sqlite3.OperationalError as problem:
                is_late = time.perf_counter() - started > LOCK_TIMEOUT_SECONDS
                if not may_wait or is_late or not _is_busy(problem):
                    raise
                time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311
                pause = min(pause * 1.3, MAX_PAUSE_SECONDS)

    def _explained(self, problem: Exception) -> Exception:
        return self._explain(problem) if isinstance(problem, sqlite3.Error | OSError) else problem

    def _rollback(self, problem: BaseException) -> None:
        connection = self._connection
        try:
            if connection is not None and connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            self.disconnect()
        if isinstance(problem, sqlite3.Error) or not isinstance(problem, Exception):
            self._failures += 1
            self.disconnect()  # after a disk error, the connection may have cached what is not on disk


def _is_busy(problem: BaseException) -> bool:
    """Whether another process holds the write lock."""
    code = getattr(problem, "sqlite_errorcode", 0)  # errors of the sqlite3 module itself have no code
    return isinstance(problem, sqlite3.Error) and code & 0xFF == sqlite3.SQLITE_BUSY
