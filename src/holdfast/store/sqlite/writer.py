"""The writer: carries out what is to be written, as many jobs at a time as wait.

A commit costs one trip to the disk however much is in it, so the jobs that arrive while one is under way are committed
together as the next. Jobs run in the order in which they were handed in; a result is told on the event loop of the one who
asked, after the commit.

Brief jobs are committed on the event loop itself while the disk is quick and nobody else writes: on a disk that syncs in a
fraction of a millisecond, the way to another thread and back costs more than it saves. Everything else is for a thread: long
jobs, a slow disk, another process that writes, anything that fails, and now and then a job so that the log is looked after.

A reminder: whatever is to be looked at again in a moment, looked at together, for one timer costs as much as a small write.

A write under way: it happens whether it is awaited or not, and exactly once.
"""

import asyncio
import queue
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from contextlib import suppress
from types import TracebackType
from typing import Any, TypeVar

from holdfast.core.errors import HoldfastError, StoreUnavailable
from holdfast.store.sqlite.transaction import LARGEST_GROUP, Identify, Job, Work, WriteConnection


class CoalescingTimer:
    """Calls back everybody who asked for it, on the event loop on which they asked."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._due: dict[asyncio.AbstractEventLoop, list[Callable[[], None]]] = {}

    def remind(self, look: Callable[[], None]) -> None:
        """Have something looked at, this many seconds from now or sooner."""
        loop = asyncio.get_running_loop()
        due = self._due.get(loop)
        if due is None:
            due = self._due[loop] = []
            loop.call_later(self._seconds, self._go, loop)
        due.append(look)

    def _go(self, loop: asyncio.AbstractEventLoop) -> None:
        for look in self._due.pop(loop):
            look()


Result = TypeVar("Result")
LEFT_SECONDS = 0.002
"""How long something that was left waits for something else to go with."""


class Writer:
    """Has the one pen of a process."""

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        explain: Callable[[sqlite3.Error | OSError], HoldfastError],
        afterwards: Callable[[sqlite3.Connection, int], int],
        identify: Identify,
    ) -> None:
        """`afterwards` is told how many jobs were done since it was last called, and says how many may be before the next time."""
        self._pen = WriteConnection(connect, explain, identify)
        self._afterwards = afterwards
        self._jobs: deque[Job[Any]] = deque()
        self._hand = threading.Lock()
        """Held by the thread that holds the pen. Only that one takes jobs out, so they are done in their order."""
        self._calls: queue.SimpleQueue[bool] = queue.SimpleQueue()
        """For the thread: True for jobs that wait, False to end."""
        self._unheard: list[list[Job[Any]]] = []
        """What was written and not told yet: it is to be heard before what was written after it."""
        self.reminder = CoalescingTimer(LEFT_SECONDS)
        self._done = 0
        self._leeway = 0
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="holdfast-writer", daemon=True)
        self._thread.start()

    def submit(
        self, work: Work[Result], *, tell: Callable[[Result], None] | None = None, is_brief: bool = False
    ) -> "asyncio.Future[Result]":
        """Have a job done. `tell` hears its result on this event loop before the future does.

        INVARIANT: a job refuses (raises HoldfastError) before it writes anything, and can be run a second time. A brief one
        touches a few rows and no other file.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        job = Job(work, loop, future, tell, is_brief)
        self._jobs.append(job)
        if (
            self._is_closed
        ):  # asked afterwards: what was handed in before is taken by the thread before it ends
            with suppress(ValueError):
                self._jobs.remove(job)
                future.set_exception(StoreUnavailable("the store is closed"))
        elif is_brief and self._pen.is_quick and self._done < self._leeway:
            loop.call_soon(self._write_here, loop)  # by then whoever else is about to write has handed it in
        else:
            self._calls.put(True)
        return future

    def stop(self) -> None:
        """Do what was handed in, then end the thread. Blocks; idempotent."""
        if not self._is_closed:
            self._is_closed = True
            self._calls.put(False)
        self._thread.join()

    # -- on an event loop

    def _write_here(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._jobs:
            return  # they went with an earlier one
        if not self._hand.acquire(blocking=False):
            self._calls.put(True)
            return
        group: list[Job[Any]] = []
        try:
            while self._jobs and self._jobs[0].is_brief and len(group) < LARGEST_GROUP:
                group.append(self._jobs.popleft())
            if group and self._pen.try_to_write(group):
                self._done += len(group)
                written, group = group, []
                self._tell(written, here=loop)
        finally:
            self._jobs.extendleft(reversed(group))
            self._hand.release()
            if group:
                self._calls.put(True)

    # -- in the thread

    def _run(self) -> None:
        while self._calls.get():
            self._write_waiting()
        self._write_waiting()
        self._pen.put_away()

    def _write_waiting(self) -> None:
        with self._hand:
            while (job := self._next()) is not None:
                group = [job]
                try:
                    self._pen.write(group, self._next)
                except Exception as problem:  # a fault of ours; whoever waits must hear of it
                    for each in group:
                        each.problem = each.problem or problem
                self._done += len(group)
                self._tell(group)
                self._pen.tidy(self._look_after)

    # -- in either

    def _tell(self, group: list[Job[Any]], *, here: asyncio.AbstractEventLoop | None = None) -> None:
        """INVARIANT: by whoever holds the pen, so that nothing which was written later is heard before."""
        by_loop: dict[asyncio.AbstractEventLoop, list[Job[Any]]] = {}
        for job in group:
            by_loop.setdefault(job.loop, []).append(job)
        for loop, jobs in by_loop.items():
            if loop is here and not self._unheard:
                _settle(jobs)
                continue
            self._unheard.append(jobs)
            try:
                loop.call_soon_threadsafe(self._hear, jobs)
            except RuntimeError:  # the loop of the asker is gone; what was written stays written
                self._unheard.remove(jobs)

    def _hear(self, jobs: list[Job[Any]]) -> None:
        self._unheard.remove(jobs)
        _settle(jobs)

    def _next(self) -> Job[Any] | None:
        try:
            return self._jobs.popleft()
        except IndexError:
            return None

    def _look_after(self, connection: sqlite3.Connection) -> None:
        done, self._done = self._done, 0
        self._leeway = self._afterwards(connection, done)


def _settle(jobs: list[Job[Any]]) -> None:
    for job in jobs:
        if job.problem is None and job.tell is not None:
            job.tell(job.result)
        if job.future.done():
            continue
        if job.problem is None:
            job.future.set_result(job.result)
        else:
            job.future.set_exception(job.problem)


class PendingWrite(Coroutine[Any, Any, Result]):
    """Awaits the news of a write, on which the write itself does not depend.

    A plain coroutine would not begin before it is awaited, and cancelling its task would leave open whether the write
    took place. Here the write is on its way before the caller gets this object; cancelling only ends the waiting.
    """

    def __init__(self, future: "asyncio.Future[Result]") -> None:
        self._future = future
        self._waiting: Generator[Any, Any, Result] | None = None

    @classmethod
    def done(cls) -> "PendingWrite[None]":
        """Nothing that would have to be waited for."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.set_result(None)
        return PendingWrite(future)

    @classmethod
    def failed(cls, problem: BaseException) -> "PendingWrite[Result]":
        """A write that was refused at once; who awaits it hears why."""
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        future.set_exception(problem)
        return cls(future)

    def __await__(self) -> Generator[Any, Any, Result]:
        return self._future.__await__()

    def send(self, value: Any) -> Any:  # Any: the protocol between an event loop and a coroutine
        return self._generator().send(value)

    def throw(
        self, type: Any, value: BaseException | object = None, traceback: TracebackType | None = None
    ) -> Any:
        return self._generator().throw(value if isinstance(value, BaseException) else type)

    def close(self) -> None:
        if self._waiting is not None:
            self._waiting.close()

    def _generator(self) -> Generator[Any, Any, Result]:
        if self._waiting is None:
            self._waiting = self.__await__()
        return self._waiting
