"""The same work on many things, spread over a few threads: reading, hashing and writing files let go of the interpreter."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

THREADS = 4
FEW = 16
"""So few are done by one thread."""

_Thing = TypeVar("_Thing")
_Result = TypeVar("_Result")


async def in_threads(
    things: Sequence[_Thing], work: Callable[[_Thing], _Result]
) -> list[tuple[_Thing, _Result]]:
    """Each thing with what became of it, in no order. The first error is raised once every thread has stopped."""
    threads = THREADS if len(things) > FEW else 1

    def share(number: int) -> list[tuple[_Thing, _Result]]:
        return [(thing, work(thing)) for thing in things[number::threads]]

    shares = await asyncio.gather(
        *(asyncio.to_thread(share, number) for number in range(threads)), return_exceptions=True
    )
    for done in shares:
        if isinstance(done, BaseException):
            raise done
    return [pair for done in shares if not isinstance(done, BaseException) for pair in done]
