"""The same work on many things, spread over a few threads: reading, hashing and writing files let go of the interpreter."""

import asyncio
import threading
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
    """Each thing with what became of it, in no order. At the first error, or when cancelled, all threads stop.

    INVARIANT: when it is over, however it ends, no thread works any more.
    """
    threads = THREADS if len(things) > FEW else 1
    is_over = threading.Event()

    def share(number: int) -> list[tuple[_Thing, _Result]]:
        done: list[tuple[_Thing, _Result]] = []
        try:
            for thing in things[number::threads]:
                if is_over.is_set():
                    break
                done.append((thing, work(thing)))
        except BaseException:
            is_over.set()
            raise
        return done

    running = asyncio.gather(
        *(asyncio.to_thread(share, number) for number in range(threads)), return_exceptions=True
    )
    try:
        shares = await asyncio.shield(running)
    except asyncio.CancelledError:
        is_over.set()
        await running
        raise
    for done in shares:
        if isinstance(done, BaseException):
            raise done
    return [pair for done in shares if not isinstance(done, BaseException) for pair in done]
