"""What every value of Holdfast is made of: frozen, compared by content, with one JSON form.

Values are msgspec structs and not dataclasses because the same class is the event in memory, the row in the journal
and the line in an export; msgspec reads and writes them typed, with tagged unions, at a few microseconds each.
"""

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, dataclass_transform

import msgspec

if TYPE_CHECKING:
    Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
else:
    # Any at run time: msgspec reads annotations and has no recursive aliases.
    Json = Any

JsonObject = dict[str, Json]
MAX_DEPTH = 64
"""How deep lists and objects may lie in each other: far deeper than honest ones, far from what breaks who reads them."""

_NESTING = (dict, list)


class _ValueMeta(msgspec.StructMeta):
    """Makes every value frozen and its fields keyword-only; msgspec does not hand kw_only down by itself.

    Values are data and cannot lie in a circle, so the cycle collector need not visit them: a long history is many.
    """

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any) -> Any:
        options: dict[str, Any] = {"frozen": True, "kw_only": True, "omit_defaults": True, "gc": False}
        return super().__new__(cls, name, bases, namespace, **(options | config))


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Value(msgspec.Struct, frozen=True, metaclass=_ValueMeta):
    """Base of everything that is recorded, compared or handed between packages."""


encode: Callable[[object], bytes] = msgspec.json.Encoder().encode
"""The JSON bytes of a value, as they go to disk."""


def is_too_deep(value: Json) -> bool:
    """Whether lists and objects lie in each other deeper than `MAX_DEPTH`; found without recursion, for it is hostile."""
    level = [value] if isinstance(value, _NESTING) else []
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, _NESTING)
        ]
        if not level:
            return False
    return True


canonical: Callable[[object], bytes] = msgspec.json.Encoder(order="deterministic").encode
"""JSON bytes that are equal exactly when the values are: keys sorted, no white space."""


def digest(value: object) -> str:
    """SHA-256 over the canonical JSON of a value, in hex."""
    return hashlib.sha256(canonical(value)).hexdigest()


def digest_bytes(content: bytes) -> str:
    """SHA-256 of raw bytes, in hex: how blobs are named."""
    return hashlib.sha256(content).hexdigest()
