"""The engine in memory, for tests and for one process: it keeps every promise but durability."""

import asyncio
from contextlib import suppress

from holdfast.core import SessionId
from holdfast.worker.dispatch import Handler, NotNow, check_places


class MemoryDispatch:
    """Jobs in the memory of this process."""

    def __init__(self) -> None:
        self._jobs: list[tuple[float, SessionId]] = []
        self._running = 0
        self._failed = 0
        self._is_changed = asyncio.Event()

    async def post(self, transaction: object, session: SessionId, *, delay_seconds: float = 0.0) -> None:
        self._jobs.append((asyncio.get_running_loop().time() + delay_seconds, session))
        self._is_changed.set()

    async def run(self, handler: Handler, *, places: int, stop: asyncio.Event) -> None:
        check_places(places)
        stopping = asyncio.create_task(stop.wait())
        try:
            async with asyncio.TaskGroup() as tasks:
                while not stop.is_set():
                    while self._running < places and (job := self._take()) is not None:
                        self._running += 1
                        tasks.create_task(self._do(handler, job))
                    await self._wait(stopping)
        finally:
            stopping.cancel()

    async def cancel(self, session: SessionId) -> None:
        self._jobs = [job for job in self._jobs if job[1] != session]

    async def backlog(self) -> int:
        return len(self._jobs) + self._running

    async def failed(self) -> int:
        return self._failed

    async def close(self) -> None:
        self._jobs.clear()

    def _take(self) -> SessionId | None:
        now = asyncio.get_running_loop().time()
        for number, (due, session) in enumerate(self._jobs):
            if due <= now:
                del self._jobs[number]
                return session
        return None

    async def _wait(self, stopping: "asyncio.Task[bool]") -> None:
        due = min((due for due, _ in self._jobs), default=None)
        patience = None if due is None else max(due - asyncio.get_running_loop().time(), 0.001)
        changing = asyncio.create_task(self._is_changed.wait())
        await asyncio.wait((stopping, changing), timeout=patience, return_when=asyncio.FIRST_COMPLETED)
        self._is_changed.clear()
        changing.cancel()
        with suppress(asyncio.CancelledError):
            await changing

    async def _do(self, handler: Handler, session: SessionId) -> None:
        try:
            await handler(session)
        except NotNow as later:
            await self.post(None, session, delay_seconds=later.seconds)
        except Exception:
            self._failed += 1
        finally:
            self._running -= 1
            self._is_changed.set()
