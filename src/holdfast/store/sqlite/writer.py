"""The writer: runs write jobs in the order of submission and commits them in groups.

A commit costs one disk sync for any number of jobs, so the jobs that arrive during a commit share the next one. A result
is delivered after the commit, on the event loop of the requester.

Short jobs are committed on the event loop itself while the disk is fast and no other process writes: on a disk that
syncs in a fraction of a millisecond, the way to a thread and back costs more than it saves. A thread handles everything
else: long jobs, a slow disk, another process that writes, jobs that failed, and maintenance of the log.
"""

import asyncio
import queue
import sqlite3
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from holdfast.core.errors import HoldfastError, StoreUnavailable
from holdfast.store.coalescing_timer import DEFERRAL_SECONDS, CoalescingTimer
from holdfast.store.sqlite.transaction import MAX_GROUP_SIZE, Identify, Job, Work, WriteConnection

Result = TypeVar("Result")


class Writer:
    """Owns the write connection of a process."""

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        explain: Callable[[sqlite3.Error | OSError], HoldfastError],
        maintenance: Callable[[sqlite3.Connection, int], int],
        identify: Identify,
    ) -> None:
        """`maintenance` takes the number of jobs since its last call and returns how many to run before the next one."""
        self._connection = WriteConnection(connect, explain, identify)
        self._maintenance = maintenance
        self._jobs: deque[Job[Any]] = deque()
        self._write_lock = threading.Lock()
        """Held by the thread that uses the connection. Only that thread takes jobs from the queue, so they run in order."""
        self._signals: queue.SimpleQueue[bool] = queue.SimpleQueue()
        """For the thread: True if jobs wait, False to stop."""
        self._undelivered: list[list[Job[Any]]] = []
        """Committed jobs whose results are not delivered yet; they come before the results of later jobs."""
        self.deferral_timer = CoalescingTimer(DEFERRAL_SECONDS)
        self._jobs_done = 0
        self._jobs_before_maintenance = 0
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="holdfast-writer", daemon=True)
        self._thread.start()

    def submit(
        self,
        work: Work[Result],
        *,
        on_committed: Callable[[Result], None] | None = None,
        may_run_inline: bool = False,
    ) -> "asyncio.Future[Result]":
        """Submit a job. `on_committed` gets its result on this event loop before the future does.

        INVARIANT: a job raises HoldfastError, if at all, before it writes anything, and can be run twice. An inline job
        touches a few rows and no other file.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        job = Job(work, loop, future, on_committed, may_run_inline)
        self._jobs.append(job)
        if self._is_closed:  # checked after queueing: the thread runs every job queued before it stops
            with suppress(ValueError):
                self._jobs.remove(job)
                future.set_exception(StoreUnavailable("the store is closed"))
        elif may_run_inline and self._connection.is_fast and self._jobs_done < self._jobs_before_maintenance:
            loop.call_soon(self._write_inline, loop)  # jobs submitted in this iteration join it
        else:
            self._signals.put(True)
        return future

    def stop(self) -> None:
        """Run the jobs submitted so far, then end the thread. Blocking; idempotent."""
        if not self._is_closed:
            self._is_closed = True
            self._signals.put(False)
        self._thread.join()

    # -- on an event loop

    def _write_inline(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._jobs:
            return  # an earlier group included them
        if not self._write_lock.acquire(blocking=False):
            self._signals.put(True)
            return
        group: list[Job[Any]] = []
        try:
            while self._jobs and self._jobs[0].may_run_inline and len(group) < MAX_GROUP_SIZE:
                group.append(self._jobs.popleft())
            if group and self._connection.try_commit_inline(group):
                self._jobs_done += len(group)
                written, group = group, []
                self._report(written, here=loop)
        finally:
            self._jobs.extendleft(reversed(group))
            self._write_lock.release()
            if group:
                self._signals.put(True)

    # -- in the thread

    def _run(self) -> None:
        while self._signals.get():
            self._write_waiting()
        self._write_waiting()
        self._connection.disconnect()

    def _write_waiting(self) -> None:
        with self._write_lock:
            while (job := self._next()) is not None:
                group = [job]
                try:
                    self._connection.commit_group(group, self._next)
                except Exception as problem:  # a bug; the requesters must get it
                    for each in group:
                        each.problem = each.problem or problem
                self._jobs_done += len(group)
                self._report(group)
                self._connection.maintain(self._maintain)

    # -- in either

    def _report(self, group: list[Job[Any]], *, here: asyncio.AbstractEventLoop | None = None) -> None:
        """INVARIANT: called with the write lock held, so that results are delivered in the order of the commits."""
        by_loop: dict[asyncio.AbstractEventLoop, list[Job[Any]]] = {}
        for job in group:
            by_loop.setdefault(job.loop, []).append(job)
        for loop, jobs in by_loop.items():
            if loop is here and not self._undelivered:
                _resolve(jobs)
                continue
            self._undelivered.append(jobs)
            try:
                loop.call_soon_threadsafe(self._deliver, jobs)
            except RuntimeError:  # the requester's loop is closed; the commit is done
                self._undelivered.remove(jobs)

    def _deliver(self, jobs: list[Job[Any]]) -> None:
        self._undelivered.remove(jobs)
        _resolve(jobs)

    def _next(self) -> Job[Any] | None:
        try:
            return self._jobs.popleft()
        except IndexError:
            return None

    def _maintain(self, connection: sqlite3.Connection) -> None:
        done, self._jobs_done = self._jobs_done, 0
        self._jobs_before_maintenance = self._maintenance(connection, done)


def _resolve(jobs: list[Job[Any]]) -> None:
    for job in jobs:
        if job.problem is None and job.on_committed is not None:
            job.on_committed(job.result)
        if job.future.done():
            continue
        if job.problem is None:
            job.future.set_result(job.result)
        else:
            job.future.set_exception(job.problem)
