"""The event loop: work that must not stop it, such as hashing megabytes, and how a task is ended."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from holdfast.core.values import Json

LARGE_CHARACTERS = 256 << 10
LARGE_ITEMS = 2_000
"""Encoding and hashing this much takes about a millisecond."""
_CANCEL_SECONDS = 0.2

Result = TypeVar("Result")


async def off_loop(value: Json, work: Callable[[], Result]) -> Result:
    """The result of the work, done in a thread if the value that it is about is large."""
    return await asyncio.to_thread(work) if is_large(value) else work()


def is_large(value: Json) -> bool:
    """Whether a value has many characters or items. Stops counting when it has."""
    waiting, items, characters = [value], 0, 0
    while waiting:
        match waiting.pop():
            case str(text):
                characters += len(text)
            case list(parts):
                items += len(parts)
                if items <= LARGE_ITEMS:
                    waiting += parts
            case dict(fields):
                items += len(fields)
                if items <= LARGE_ITEMS:
                    waiting += fields.keys()
                    waiting += fields.values()
            case _:
                pass
        if items > LARGE_ITEMS or characters > LARGE_CHARACTERS:
            return True
    return False


async def end_task(task: "asyncio.Task[None]") -> None:
    """Cancel a task until it has ended.

    Once is not enough: if a wait with a time limit fails at the same moment, `asyncio.wait_for` of Python 3.11 raises that error
    and the cancellation is lost, so a loop that survives outages would go on.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait((task,), timeout=_CANCEL_SECONDS)
    if not task.cancelled():
        task.result()
