"""Python data as Lisp source, for a host that writes a program around a value."""

import math
from collections.abc import Mapping, Sequence

from holdfast.core.errors import InvalidInput

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}
"""The backslash must be first, because the other escapes add backslashes."""
_MAX_DEPTH = 100


def to_lisp(value: object) -> str:
    """A Lisp expression whose value is this data: None, booleans, numbers, text, lists and dictionaries with text as keys.

    Text cannot leave its string literal, so data from outside is safe in a program. Raises InvalidInput.
    """
    return _expression(value, 0)


def _expression(value: object, depth: int) -> str:
    if depth > _MAX_DEPTH:
        raise InvalidInput(f"data nested more than {_MAX_DEPTH} deep cannot be written as Lisp")
    match value:
        case None:
            return "nil"
        case bool():
            return "#t" if value else "#f"
        case int():
            return str(int(value))
        case float() if math.isfinite(value):
            return repr(float(value))
        case str():
            return _string(value)
        case Mapping():
            entries = [f"{_string(_key(key))} {_expression(item, depth + 1)}" for key, item in value.items()]
            return f"(table {' '.join(entries)})" if entries else "(table)"
        case Sequence() if not isinstance(value, bytes | bytearray | memoryview):
            return f"(list {' '.join(_expression(item, depth + 1) for item in value)})" if value else "(list)"
    raise InvalidInput(
        f"{type(value).__name__} cannot be written as Lisp",
        hint="use None, booleans, finite numbers, text, lists and dictionaries",
    )


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise InvalidInput(
            f"a key of a Lisp table is text, not {type(key).__name__}", hint="convert the keys to text first"
        )
    return key


def _string(text: str) -> str:
    for plain, escaped in _ESCAPES.items():
        text = text.replace(plain, escaped)
    return f'"{text}"'
