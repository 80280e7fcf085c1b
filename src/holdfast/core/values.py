"""`Value`, the base of all value types: frozen, compared by content, with one JSON form.

Values are msgspec structs, not dataclasses, because the same class is the event in memory, the row in the journal and
the line in an export. msgspec reads and writes them typed, with tagged unions, in a few microseconds each.
"""

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, dataclass_transform

import msgspec

if TYPE_CHECKING:
    Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
else:
    # Any at run time: msgspec reads annotations and does not support recursive aliases.
    Json = Any

JsonObject = dict[str, Json]
MAX_DEPTH = 64
"""How deep lists and objects can be nested: far deeper than legitimate data, and safe for every reader."""

_NESTING = (dict, list)


class _ValueMeta(msgspec.StructMeta):
    """Makes every value frozen and its fields keyword-only; msgspec does not inherit kw_only.

    Values cannot form reference cycles, so the garbage collector need not track them; a long history has many.
    """

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **config: Any) -> Any:
        options: dict[str, Any] = {"frozen": True, "kw_only": True, "omit_defaults": True, "gc": False}
        return super().__new__(cls, name, bases, namespace, **(options | config))


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
class Value(msgspec.Struct, frozen=True, metaclass=_ValueMeta):
    """Base of everything that is recorded, compared or passed between packages."""


encode: Callable[[object], bytes] = msgspec.json.Encoder().encode
"""Encode a value to JSON, as it is stored."""


def is_too_deep(value: Json) -> bool:
    """Whether lists and objects are nested deeper than `MAX_DEPTH`. Not recursive, because the input can be hostile."""
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
"""Encode a value to JSON that is equal exactly if the values are: sorted keys, no white space."""


def digest(value: object) -> str:
    """The SHA-256 of the canonical JSON of a value, in hex."""
    return hashlib.sha256(canonical(value)).hexdigest()


def digest_bytes(content: bytes) -> str:
    """The SHA-256 of bytes, in hex: the name of a blob."""
    return hashlib.sha256(content).hexdigest()
