"""Recursion without the host's stack: a generator that needs a deeper result yields the generator that finds it.

The host's garbage collector, told to wait while a program is read, expanded, compiled, saved or restored.
"""

import gc
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

from holdfast.guests.lisp.errors import Malformed


@contextmanager
def collection_paused() -> Iterator[None]:
    """No collection meanwhile. What is built here is a tree that stays: looking for garbage in it again and again while
    it grows took four times as long as building it. Only around work that is bounded and does not wait."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


MAX_CALLS = 40_000
"""Data may share its parts so often that walking them has no end; also keeps the time this takes short."""

Result = TypeVar("Result")

Deep: TypeAlias = Generator[Generator[Any, Any, Any], Any, Result]
"""A recursive function. Any: what a yield is sent back has the type of what was yielded, which Python cannot say."""


def bounce(start: Deep[Result], *, most: int | None = MAX_CALLS) -> Result:
    """Run a recursive function to its end, however deep it goes. Raises Malformed after more calls than `most`."""
    with collection_paused():
        stack: list[Deep[Any]] = [start]
        value: Any = None
        calls = 0
        while stack:
            try:
                deeper = stack[-1].send(value)
            except StopIteration as end:
                stack.pop()
                value = end.value
            else:
                stack.append(deeper)
                value = None
                calls += 1
                if most is not None and calls > most:
                    raise Malformed(f"a form has at most {most} parts")
    result: Result = value
    return result
