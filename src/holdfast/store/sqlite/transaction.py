"""The pen: the one writing connection of a process, and how a group of jobs becomes one commit."""

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
LONGEST_PAUSE_SECONDS = 0.001
LARGEST_GROUP = 512
QUICK_SECONDS = 0.002
"""An event loop can be without its thread for so long before anybody notices."""


class Transaction:
    """What the jobs of one group share: the connection, and what is to be done before and after the commit."""

    def __init__(self, connection: sqlite3.Connection, *, failures: int = 0) -> None:
        self.failures = failures
        """How often the disk has failed so far; what was remembered before the last time may not be what is on it."""
        self.execute = connection.execute
        self.executemany = connection.executemany
        self.staged: dict[object, Any] = {}
        """Values that hold from the commit on, by owner."""
        self.moved: set[str] = set()
        """Sessions in which something happened, and which so come first in the list."""
        self.before_commit: list[Callable[[], None]] = []
        self.after_commit: list[Callable[[], None]] = []


Work = Callable[[Transaction], Result]


@dataclass(slots=True, eq=False)
class Job(Generic[Result]):
    """Something to be written, who asked for it, and what became of it."""

    work: Work[Result]
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[Result]"
    tell: Callable[[Result], None] | None
    is_brief: bool
    result: Result | None = None
    problem: BaseException | None = None


Identify = Callable[[], object]
"""Which file lies where the database does."""

Arrivals = Callable[[], Job[Any] | None]
"""The next job that waits, taken; None where there is none."""


def _none() -> None:
    """Nobody else waits."""


class WriteConnection:
    """Writes. In one hand at a time, whichever thread that is."""

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
        """The one that was written to first, and that stays the one."""
        self._connection: sqlite3.Connection | None = None
        self._failures = 0
        self._moves_log = True
        self.is_quick = False
        """Whether neither the disk nor another process kept the last commit waiting."""

    def write(
        self, group: list[Job[Any]], arrivals: Arrivals = _none, *, is_second_try: bool = False
    ) -> None:
        """Carry out a group and commit it, however long that takes; what arrives meanwhile joins it.

        Each job has its result or its problem afterwards.
        """
        try:
            self._attempt(group, arrivals, is_patient=True)
        except Exception as problem:
            self._rollback(problem)
            if _is_busy(problem):
                # Nothing was begun. Whoever handed something in meanwhile has waited as well, and waits no second time.
                group.extend(iter(arrivals, None))
                for job in group:
                    job.problem = self._said(problem)
            elif len(group) > 1:
                # One job's failure must not be another's: each gets a transaction of its own.
                for job in group:
                    self.write([job])
            elif isinstance(problem, sqlite3.Error) and not is_second_try:
                # A commit that failed on its way to the disk may be there all the same. The second try finds out.
                self.write(group, is_second_try=True)
            else:
                (job,) = group
                job.problem = self._said(problem)

    def try_to_write(self, group: list[Job[Any]]) -> bool:
        """The same where nothing has to be waited for. Where it comes to nothing, `write` finds out what is on the disk."""
        try:
            self._attempt(group, _none, is_patient=False)
        except BaseException as problem:
            self.is_quick = False
            if not _is_busy(problem):
                self._rollback(problem)
            if not isinstance(problem, Exception):
                raise
            return False
        return True

    def tidy(self, afterwards: Callable[[sqlite3.Connection], None]) -> None:
        """Have done what makes later commits cheaper and what nobody waits for."""
        if self._connection is None:
            return
        try:
            afterwards(self._connection)
        except (sqlite3.Error, OSError) as problem:
            self._rollback(problem)

    def put_away(self) -> None:
        """Close the connection; the next job opens another."""
        self.is_quick = False
        if self._connection is not None:
            try:
                self._connection.close()
            finally:
                self._connection = None

    # -- below here: one attempt

    def _attempt(self, group: list[Job[Any]], arrivals: Arrivals, *, is_patient: bool) -> None:
        if self._connection is None:
            self._check_file()  # before a connection makes an empty database there
            self._connection = self._connect()
            self._moves_log = True
        connection = self._connection
        self._let_log_be_moved(connection, is_patient)
        transaction = Transaction(connection, failures=self._failures)
        waited = self._begin(connection, is_patient=is_patient)
        for job in group:
            job.problem = None
            try:
                job.result = job.work(transaction)
            except HoldfastError as refusal:
                job.problem = refusal
            if is_patient and job is group[-1] and len(group) < LARGEST_GROUP:
                group.extend(islice(iter(arrivals, None), LARGEST_GROUP - len(group)))
        for step in transaction.before_commit:
            step()
        begun = time.perf_counter()
        connection.execute("COMMIT")
        self.is_quick = waited + time.perf_counter() - begun < QUICK_SECONDS
        self._file = self._file or self._identify()
        self._check_file()
        for step in transaction.after_commit:
            try:
                step()
            except OSError:
                continue  # what is committed stays so: a file that cannot be removed must not have anything done again

    def _check_file(self) -> None:
        """Acknowledge nothing that goes into a file which somebody has taken away meanwhile."""
        if self._file is not None and self._identify() != self._file:
            raise StoreUnavailable(
                "the database was removed or replaced while this process had it open, so this cannot be recorded",
                hint="end every Holdfast and start again: what can be read is saved",
            )

    def _let_log_be_moved(self, connection: sqlite3.Connection, is_allowed: bool) -> None:
        """Whether a commit may be the one that moves SQLite's log into the database, which takes a while."""
        if self._moves_log != is_allowed:
            pages = database.CHECKPOINT_PAGES if is_allowed else 0
            connection.execute(f"PRAGMA wal_autocheckpoint = {pages}")
            self._moves_log = is_allowed

    def _begin(self, connection: sqlite3.Connection, *, is_patient: bool) -> float:
        """Begin, and say how many seconds another process kept us waiting."""
        # SQLite's own waiting sleeps up to 100 ms at a time; a commit takes one, so we look again sooner.
        begun = time.perf_counter()
        pause = 0.0001
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return time.perf_counter() - begun
            except sqlite3.OperationalError as problem:
                is_late = time.perf_counter() - begun > LOCK_TIMEOUT_SECONDS
                if not is_patient or is_late or not _is_busy(problem):
                    raise
                time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311
                pause = min(pause * 1.3, LONGEST_PAUSE_SECONDS)

    def _said(self, problem: Exception) -> Exception:
        return self._explain(problem) if isinstance(problem, sqlite3.Error | OSError) else problem

    def _rollback(self, problem: BaseException) -> None:
        connection = self._connection
        try:
            if connection is not None and connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            self.put_away()
        if isinstance(problem, sqlite3.Error) or not isinstance(problem, Exception):
            self._failures += 1
            self.put_away()  # a connection that met a disk error may remember what is not on the disk


def _is_busy(problem: BaseException) -> bool:
    """Whether another process is writing."""
    code = getattr(problem, "sqlite_errorcode", 0)  # what the sqlite3 module itself complains of has none
    return isinstance(problem, sqlite3.Error) and code & 0xFF == sqlite3.SQLITE_BUSY
