"""Guest values as plain JSON data: what a run returns, and what a call may carry."""

import base64
import math
from collections.abc import Mapping
from typing import Any

from holdfast.core import Json

MAX_DEPTH = 64
MAX_ITEMS = 200_000
_MAX_TEXT = 2_000


class NotPlain(Exception):
    """A value that has no JSON form; the message says which part."""


def plain(value: Any, *, is_strict: bool = False) -> Json:
    """The JSON form of a value. What has none is shown as its repr, or raises NotPlain if strict."""
    return _Plainer(is_strict).convert(value, 0)


class _Plainer:
    """Converts one value; counts what it has seen, because a guest may share one list a million times."""

    def __init__(self, is_strict: bool) -> None:
        self._is_strict = is_strict
        self._items = 0

    def convert(self, value: Any, depth: int) -> Json:
        self._items += 1
        if self._items > MAX_ITEMS:
            raise NotPlain(f"more than {MAX_ITEMS} items")
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, int):
            return self._integer(value)
        if isinstance(value, float):
            return value if math.isfinite(value) else self._other(value)
        if depth >= MAX_DEPTH:
            raise NotPlain(f"nested deeper than {MAX_DEPTH}")
        if isinstance(value, Mapping):
            return {self._key(key): self.convert(item, depth + 1) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.convert(item, depth + 1) for item in value]
        if isinstance(value, (set, frozenset)) and not self._is_strict:
            return [self.convert(item, depth + 1) for item in sorted(value, key=repr)]
        return self._other(value)

    def _integer(self, value: int) -> Json:
        # JSON readers agree on integers of 64 bits only.
        return value if -(2**63) <= value < 2**64 else self._other(value)

    def _key(self, key: Any) -> str:
        if isinstance(key, str):
            return key
        if self._is_strict:
            raise NotPlain(f"a key is of type {type(key).__name__}, not str")
        return str(key)[:_MAX_TEXT]

    def _other(self, value: Any) -> Json:
        if self._is_strict:
            raise NotPlain(f"a value of type {type(value).__name__}")
        if isinstance(value, bytes):
            return base64.b64encode(value).decode()
        try:
            text = repr(value)
        except (ValueError, RecursionError):
            # An integer of more than 4,300 digits has no repr.
            return f"<{type(value).__name__}>"
        return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…"
