"""Plausibility: whether the numbers in an event are such as a journal of ours can hold. Others would break what counts with them."""

from decimal import Decimal

import msgspec

from holdfast.core.events import AnyEvent

LARGEST_NUMBER = 2**53
LARGEST_COST = Decimal(10**12)
SMALLEST_EXPONENT = -40
LATEST_MS = 253_402_300_799_999
"""The end of the year 9999, behind which no calendar goes."""


def has_sane_numbers(event: AnyEvent, at_ms: int) -> bool:
    """Whether its time can be shown and its numbers counted. What an agent handed to a tool may be any number."""
    return is_time(at_ms) and _is_countable(event)


def is_time(at_ms: int) -> bool:
    """Whether it is a moment from 1970 on that a calendar has."""
    return 0 <= at_ms <= LATEST_MS


def _is_countable(value: object) -> bool:
    match value:
        case int():
            return abs(value) <= LARGEST_NUMBER
        case Decimal():
            exponent = value.as_tuple().exponent
            return isinstance(exponent, int) and exponent >= SMALLEST_EXPONENT and 0 <= value <= LARGEST_COST
        case tuple():
            return all(map(_is_countable, value))
        case msgspec.Struct():
            return all(_is_countable(getattr(value, field)) for field in value.__struct_fields__)
        case _:
            return True
