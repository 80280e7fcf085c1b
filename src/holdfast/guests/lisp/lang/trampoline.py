"""Recursion without Python's stack (a generator yields the generator for a deeper result), and a pause of garbage collection."""

import gc
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

from holdfast.guests.lisp.errors import LispSyntaxError


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Disable garbage collection while a tree is built that stays alive. Traversing the growing tree again and again took
    four times as long as building it. Use it only around bounded work that does not wait.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


MAX_CALLS = 40_000
"""Limits the traversal of data whose parts are shared many times, and the time it takes."""

Result = TypeVar("Result")

Recursive: TypeAlias = Generator[Generator[Any, Any, Any], Any, Result]
"""A recursive function. Any: the value sent back has the result type of the yielded generator, which Python cannot express."""


def run_trampoline(start: Recursive[Result], *, max_calls: int | None = MAX_CALLS) -> Result:
    """Run a recursive function to its end, at any depth. Raises LispSyntaxError after more than `max_calls` calls."""
    with garbage_collection_paused():
        stack: list[Recursive[Any]] = [start]
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
                if max_calls is not None and calls > max_calls:
                    raise LispSyntaxError(f"a form has at max_calls {max_calls} parts")
    result: Result = value
    return result
