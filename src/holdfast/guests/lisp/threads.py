"""Worker threads that run Lisp programs, so that no program blocks the event loop, however large its data.

Python switches between threads every few milliseconds, so the loop stays responsive. The threads do not run in parallel.
"""

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
_MAX_THREADS = 4
"""More would only wait for each other. With one, a slow slice of one session would block all others."""


class WorkerThreads:
    """The threads of an engine: started on first use, ended with the engine."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """Run a short piece of work in a thread. A cancelled caller waits for its end, because the work uses the caller's data."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(_MAX_THREADS, thread_name_prefix="lisp")
        future = asyncio.get_running_loop().run_in_executor(self._executor, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            while not future.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([future])
            raise

    async def close(self) -> None:
        """End the threads. Idempotent."""
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown()
