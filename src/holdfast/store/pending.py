"""A write under way: it happens whether it is awaited or not, and exactly once."""

import asyncio
from collections.abc import Coroutine, Generator
from types import TracebackType
from typing import Any, TypeVar

Result = TypeVar("Result")


class Pending(Coroutine[Any, Any, Result]):
    """Awaits the news of a write, on which the write itself does not depend.

    A plain coroutine would not begin before it is awaited, and cancelling its task would leave open whether the write
    took place. Here the write is on its way before the caller gets this object; cancelling only ends the waiting.
    """

    def __init__(self, future: "asyncio.Future[Result]") -> None:
        self._future = future
        self._waiting: Generator[Any, Any, Result] | None = None

    @classmethod
    def done(cls) -> "Pending[None]":
        """Nothing that would have to be waited for."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.set_result(None)
        return Pending(future)

    @classmethod
    def failed(cls, problem: BaseException) -> "Pending[Result]":
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
