"""The writer: one thread that carries out what is to be written, as many jobs at a time as wait.

A commit costs one trip to the disk however much is in it, so the jobs that arrive while one is under way are committed
together as the next, with those that arrive until the last of them has run. Jobs run in the order in which they were
handed in; a result is told on the event loop of the one who asked, after the commit.
"""

import asyncio
import queue
import random
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from holdfast.core.errors import HoldfastError, StoreUnavailable
from holdfast.store.database import LOCK_TIMEOUT_SECONDS

Result = TypeVar("Result")
LARGEST_GROUP = 512
LONGEST_PAUSE_SECONDS = 0.001


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


@dataclass(slots=True)
class _Job(Generic[Result]):
    work: Work[Result]
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[Result]"
    tell: Callable[[Result], None] | None
    result: Result | None = None
    problem: BaseException | None = field(default=None)


class Writer:
    """Owns the one writing connection of a process."""

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        explain: Callable[[sqlite3.Error | OSError], HoldfastError],
        afterwards: Callable[[sqlite3.Connection], None],
    ) -> None:
        self._connect = connect
        self._explain = explain
        self._afterwards = afterwards
        self._jobs: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._is_closed = False
        self._connection: sqlite3.Connection | None = None
        self._failures = 0
        self._thread = threading.Thread(target=self._run, name="holdfast-writer", daemon=True)
        self._thread.start()

    def submit(
        self, work: Work[Result], *, tell: Callable[[Result], None] | None = None
    ) -> "asyncio.Future[Result]":
        """Have a job done. `tell` hears its result on this event loop before the future does.

        INVARIANT: a job refuses (raises HoldfastError) before it writes anything, and can be run a second time.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        if self._is_closed:
            future.set_exception(StoreUnavailable("the store is closed"))
        else:
            self._jobs.put(_Job(work, loop, future, tell))
        return future

    def stop(self) -> None:
        """Do what was handed in, then end the thread. Blocks; idempotent."""
        if not self._is_closed:
            self._is_closed = True
            self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            group = [job]
            self._commit(group, is_open=True)
            _tell(group)
            if self._connection is not None:
                self._tidy(self._connection)
        self._disconnect()

    def _commit(self, group: list[_Job[Any]], *, is_open: bool = False, is_second_try: bool = False) -> None:
        try:
            self._attempt(group, is_open=is_open)
        except Exception as problem:
            self._rollback(problem)
            if _is_busy(problem):
                # Nothing was begun. Whoever handed something in meanwhile has waited as well, and waits no second time.
                self._take_arrived(group)
                for job in group:
                    job.problem = self._said(problem)
            elif len(group) > 1:
                # One job's failure must not be another's: each gets a transaction of its own.
                for job in group:
                    self._commit([job])
            elif isinstance(problem, sqlite3.Error) and not is_second_try:
                # A commit that failed on its way to the disk may be there all the same. The second try finds out.
                self._commit(group, is_second_try=True)
            else:
                (job,) = group
                job.problem = self._said(problem)

    def _said(self, problem: Exception) -> Exception:
        return self._explain(problem) if isinstance(problem, sqlite3.Error | OSError) else problem

    def _attempt(self, group: list[_Job[Any]], *, is_open: bool) -> None:
        """Carry out a group and commit it; one that is open takes in whatever arrives meanwhile."""
        if self._connection is None:
            self._connection = self._connect()
        transaction = Transaction(self._connection, failures=self._failures)
        self._begin(self._connection)
        for job in group:
            job.problem = None
            try:
                job.result = job.work(transaction)
            except HoldfastError as refusal:
                job.problem = refusal
            if is_open and job is group[-1]:
                self._take_arrived(group)
        for step in transaction.before_commit:
            step()
        self._connection.execute("COMMIT")
        for step in transaction.after_commit:
            # What is committed stays committed: a file that cannot be removed must not have anything done again.
            with suppress(OSError):
                step()

    def _take_arrived(self, group: list[_Job[Any]]) -> None:
        while len(group) < LARGEST_GROUP:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return
            if job is None:  # the sign to stop: left for the thread's own loop
                self._jobs.put(None)
                return
            group.append(job)

    def _tidy(self, connection: sqlite3.Connection) -> None:
        """Have done what makes later commits cheaper and what nobody waits for."""
        try:
            self._afterwards(connection)
        except (sqlite3.Error, OSError) as problem:
            self._rollback(problem)

    def _begin(self, connection: sqlite3.Connection) -> None:
        # SQLite's own waiting sleeps up to 100 ms at a time; a commit takes one, so we look again sooner.
        deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
        pause = 0.0001
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as problem:
                if not _is_busy(problem) or time.monotonic() > deadline:
                    raise
                time.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311
                pause = min(pause * 1.3, LONGEST_PAUSE_SECONDS)

    def _rollback(self, problem: Exception) -> None:
        connection = self._connection
        try:
            if connection is not None and connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            self._disconnect()
        if isinstance(problem, sqlite3.Error):
            self._failures += 1
            self._disconnect()  # a connection that met a disk error may remember what is not on the disk

    def _disconnect(self) -> None:
        if self._connection is not None:
            try:
                self._connection.close()
            finally:
                self._connection = None


def _is_busy(problem: Exception) -> bool:
    """Whether another process is writing."""
    return isinstance(problem, sqlite3.Error) and problem.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY


def _tell(group: list[_Job[Any]]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[_Job[Any]]] = {}
    for job in group:
        by_loop.setdefault(job.loop, []).append(job)
    for loop, jobs in by_loop.items():
        try:
            loop.call_soon_threadsafe(_settle, jobs)
        except RuntimeError:  # the loop of the asker is gone; what was written stays written
            continue


def _settle(jobs: list[_Job[Any]]) -> None:
    for job in jobs:
        if job.problem is None and job.tell is not None:
            job.tell(job.result)
        if job.future.done():
            continue
        if job.problem is None:
            job.future.set_result(job.result)
        else:
            job.future.set_exception(job.problem)
