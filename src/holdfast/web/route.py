"""One route of the API: who may use it, what it takes and gives, and who answers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from holdfast.store import Right
from holdfast.web.context import WebRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A route. `takes` and `gives` are the types of the JSON bodies; the description of the API is made from them."""

    method: Literal["GET", "POST"]
    path: str
    right: Right
    summary: str
    answer: Callable[[WebRequest], Awaitable[object]]
    gives: Any
    """A type, also a generic one such as `list[Device]`."""
    takes: type | None = None
    query: tuple[str, ...] = ()


def get(
    path: str,
    answer: Callable[[WebRequest], Awaitable[object]],
    gives: Any,  # Any: a type, also a generic one
    summary: str,
    *,
    right: Right = "look",
    query: tuple[str, ...] = (),
) -> Route:
    """A route that shows something."""
    return Route(
        method="GET", path=path, right=right, summary=summary, answer=answer, gives=gives, query=query
    )


def post(
    path: str,
    answer: Callable[[WebRequest], Awaitable[object]],
    takes: type,
    gives: Any,  # Any: a type, also a generic one
    summary: str,
    *,
    right: Right = "operate",
) -> Route:
    """A route that does something."""
    return Route(
        method="POST", path=path, right=right, summary=summary, answer=answer, gives=gives, takes=takes
    )
