"""Sanity checks on the numbers of untrusted events. Absurd values would break the code that computes with them."""

from decimal import Decimal

import msgspec

from holdfast.core.events import Event

MAX_NUMBER = 2**53
MAX_COST = Decimal(10**12)
MIN_EXPONENT = -40
MAX_TIME_MS = 253_402_300_799_999
"""The end of the year 9999, the last that `datetime` supports."""


def has_sane_numbers(event: Event, at_ms: int) -> bool:
    """Whether the time and the numbers of an event are sane. Arguments that an agent passed to a tool can be any number."""
    return is_time(at_ms) and _is_sane(event)


def is_time(at_ms: int) -> bool:
    """Whether a time is between 1970 and the year 9999."""
    return 0 <= at_ms <= MAX_TIME_MS


def _is_sane(value: object) -> bool:
    match value:
        case int():
            return abs(value) <= MAX_NUMBER
        case Decimal():
            exponent = value.as_tuple().exponent
            return isinstance(exponent, int) and exponent >= MIN_EXPONENT and 0 <= value <= MAX_COST
        case tuple():
            return all(map(_is_sane, value))
        case msgspec.Struct():
            return all(_is_sane(getattr(value, field)) for field in value.__struct_fields__)
        case _:
            return True
