"""Recursion without the host's stack: a generator that needs a deeper result yields the generator that finds it."""

from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

Result = TypeVar("Result")

Deep: TypeAlias = Generator[Generator[Any, Any, Any], Any, Result]
"""A recursive function. Any: what a yield is sent back has the type of what was yielded, which Python cannot say."""


def bounce(start: Deep[Result]) -> Result:
    """Run a recursive function to its end, however deep it goes."""
    stack: list[Deep[Any]] = [start]
    value: Any = None
    while stack:
        try:
            deeper = stack[-1].send(value)
        except StopIteration as end:
            stack.pop()
            value = end.value
        else:
            stack.append(deeper)
            value = None
    result: Result = value
    return result
