"""Numbers that a person types as options."""

import argparse
import math

MOST = 1_000_000_000


def at_least_one(text: str) -> int:
    """A number of things of which there must be one: with none or fewer, nothing that is there would be shown."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if not 1 <= number <= MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to {MOST:,}")
    return number


def seconds(text: str) -> float:
    """A time to wait; it comes to an end."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number <= MOST:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds")
    return number
