"""One route of the API: who may use it, what it takes and gives, and who answers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from holdfast.web.context import WebRequest
from holdfast.web.devices import Right


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
