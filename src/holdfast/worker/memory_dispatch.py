"""The engine in memory, for tests and for one process: it keeps every promise but durability."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from holdfast.core import SessionId
from holdfast.worker.dispatch import DEFAULT_QUEUE, Handler, NotNow, QueueStatus, check_places


class MemoryDispatch:
    """Jobs in the memory of this process."""

    def __init__(self) -> None:
        self._jobs: list[_Job] = []
        self._running: list[_Job] = []
        self._failed: list[_Job] = []
        self._is_changed = asyncio.Event()

    async def post(
        self,
        transaction: object,
        sessions: Sequence[SessionId],
        *,
        queue: str = "",
        delay_seconds: float = 0.0,
    ) -> None:
        due = asyncio.get_running_loop().time() + delay_seconds
        self._jobs += [_Job(due, session, queue or DEFAULT_QUEUE) for session in sessions]
        self._is_changed.set()

    async def run(
        self,
        handler: Handler,
        *,
        places: int,
        stop: asyncio.Event,
        queues: Sequence[str] = (DEFAULT_QUEUE,),
    ) -> None:
        check_places(places)
        stopping = asyncio.create_task(stop.wait())
        try:
            async with asyncio.TaskGroup() as tasks:
                while not stop.is_set():
                    while len(self._running) < places and (job := self._take(queues)) is not None:
                        self._running.append(job)
                        tasks.create_task(self._do(handler, job))
                    await self._wait(stopping)
        finally:
            stopping.cancel()

    async def cancel(self, session: SessionId) -> None:
        self._jobs = [job for job in self._jobs if job.session != session]

    async def backlog(self) -> int:
        return len(self._jobs) + len(self._running)

    async def failed(self) -> int:
        return len(self._failed)

    async def queues(self) -> Sequence[QueueStatus]:
        now = asyncio.get_running_loop().time()
        names = sorted({job.queue for job in (*self._jobs, *self._running, *self._failed)})
        return [
            QueueStatus(
                name=name,
                waiting=sum(job.queue == name for job in self._jobs),
                running=sum(job.queue == name for job in self._running),
                failed=sum(job.queue == name for job in self._failed),
                oldest_seconds=max((now - job.due for job in self._jobs if job.queue == name), default=0.0),
            )
            for name in names
        ]

    async def retry_failed(self) -> int:
        again, self._failed = self._failed, []
        self._jobs += again
        self._is_changed.set()
        return len(again)

    async def close(self) -> None:
        self._jobs.clear()

    def _take(self, queues: Sequence[str]) -> "_Job | None":
        now = asyncio.get_running_loop().time()
        for number, job in enumerate(self._jobs):
            if job.due <= now and job.queue in queues:
                return self._jobs.pop(number)
        return None

    async def _wait(self, stopping: "asyncio.Task[bool]") -> None:
        due = min((job.due for job in self._jobs), default=None)
        patience = None if due is None else max(due - asyncio.get_running_loop().time(), 0.001)
        changing = asyncio.create_task(self._is_changed.wait())
        await asyncio.wait((stopping, changing), timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        self._is_changed.clear()
        changing.cancel()
        with suppress(asyncio.CancelledError):
            await changing

    async def _do(self, handler: Handler, job: "_Job") -> None:
        try:
            await handler(job.session)
        except NotNow as later:
            await self.post(None, [job.session], queue=job.queue, delay_seconds=later.seconds)
        except Exception:
            self._failed.append(job)
        finally:
            self._running.remove(job)
            self._is_changed.set()


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    due: float
    session: SessionId
    queue: str
