"""`PendingWrite`, the awaitable of a write that has already been submitted."""

import asyncio
from collections.abc import Coroutine, Generator
from types import TracebackType
from typing import Any, TypeVar

Result = TypeVar("Result")


class PendingWrite(Coroutine[Any, Any, Result]):
    """Waits for a write that happens exactly once, whether it is awaited or not.

    A plain coroutine would not start before it is awaited, and after a cancellation it would be unclear whether the write
    happened. Here the write is submitted before the caller gets this object, and cancelling only ends the wait.
    """

    def __init__(self, future: "asyncio.Future[Result]") -> None:
        self._future = future
        self._waiting: Generator[Any, Any, Result] | None = None

    @classmethod
    def done(cls) -> "PendingWrite[None]":
        """A write that is already complete."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.set_result(None)
        return PendingWrite(future)

    @classmethod
    def failed(cls, problem: BaseException) -> "PendingWrite[Result]":
        """A write that was refused; awaiting it raises the reason."""
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
