"""Calls of many sessions that share one statement: those that arrive while a statement runs go with the next one.

A worker with fifty sessions takes and releases leases and looks for requests all the time; one by one, each would be a round trip.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, TypeVar

Key = TypeVar("Key")
Result = TypeVar("Result")


class GroupedCalls(Generic[Key, Result]):
    """One kind of call. `run` takes the keys of many callers and returns the result of each; a missing one is None."""

    def __init__(self, run: Callable[[Sequence[Key]], Awaitable[Mapping[Key, Result]]]) -> None:
        self._run = run
        self._waiting: dict[Key, asyncio.Future[Result | None]] = {}
        self._task: asyncio.Task[None] | None = None

    async def call(self, key: Key) -> Result | None:
        """The result for one key. Equal keys that wait together share it."""
        future = self._waiting.get(key)
        if future is None:
            future = self._waiting[key] = asyncio.get_running_loop().create_future()
        if self._task is None:
            self._task = asyncio.create_task(self._work(), name="holdfast-grouped")
        return await asyncio.shield(future)

    async def _work(self) -> None:
        try:
            while self._waiting:
                group, self._waiting = self._waiting, {}
                await self._answer(group)
        finally:
            self._task = None

    async def _answer(self, group: "dict[Key, asyncio.Future[Result | None]]") -> None:
        try:
            found = await self._run(tuple(group))
        except BaseException as problem:
            for future in group.values():
                future.set_exception(problem)
                future.exception()  # a caller that is gone has not failed to look at it
            if not isinstance(problem, Exception):
                raise
        else:
            for key, future in group.items():
                future.set_result(found.get(key))
