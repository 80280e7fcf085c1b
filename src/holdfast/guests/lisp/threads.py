"""Where programs are at work: beside the event loop, so that no program holds it up, however large its data.

Threads of one interpreter take turns every few milliseconds, so the loop goes on answering; they do not run at the same time.
"""

import asyncio
import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
_MOST = 4
"""More would only wait for each other; with one, a slow piece of one session would hold up all the others."""


class Threads:
    """The threads of an engine: started when first needed, ended with it."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None

    async def do(self, work: Callable[[], T]) -> T:
        """Have a short piece of work done. A caller that is cancelled leaves only when it is over: it works on its data."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(_MOST, thread_name_prefix="lisp")
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
