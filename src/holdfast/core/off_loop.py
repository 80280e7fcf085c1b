"""Work on large values, kept off the event loop: hashing and encoding megabytes would stop every other session."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from holdfast.core.values import Json

LARGE_CHARACTERS = 256 << 10
LARGE_ITEMS = 2_000
"""Encoding and hashing this much takes about a millisecond."""

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
