"""Sanity checks on the numbers of untrusted events. Absurd values would break the code that computes with them."""

from decimal import Decimal

import msgspec

from holdfast.core import Usage
from holdfast.core.events import Event

MAX_NUMBER = 2**53
MAX_COST = Decimal(10**12)
MIN_EXPONENT = -40
MAX_TIME_MS = 253_402_300_799_999
"""The end of the year 9999, the last that `datetime` supports."""
_JSON_FIELDS = frozenset({"arguments", "result", "value", "context"})
"""Values of programs and tools, which can be any number: nothing here computes with them."""


def has_sane_numbers(event: Event, at_ms: int) -> bool:
    """Whether the time and the numbers of an event are sane."""
    return is_time(at_ms) and _is_sane(event)


def is_time(at_ms: int) -> bool:
    """Whether a time is between 1970 and the year 9999."""
    return 0 <= at_ms <= MAX_TIME_MS


def _is_sane(value: object) -> bool:
    match value:
        case int():
            return abs(value) <= MAX_NUMBER
        case float():  # always a duration
            return 0 <= value <= MAX_NUMBER
        case Decimal():
            exponent = value.as_tuple().exponent
            return isinstance(exponent, int) and exponent >= MIN_EXPONENT and 0 <= value <= MAX_COST
        case tuple():
            return all(map(_is_sane, value))
        case Usage() if value.input_tokens < 0 or value.output_tokens < 0:
            return False
        case msgspec.Struct():
            fields = (field for field in value.__struct_fields__ if field not in _JSON_FIELDS)
            return all(_is_sane(getattr(value, field)) for field in fields)
        case _:
            return True
