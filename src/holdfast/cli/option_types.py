"""`--budget usd=1,tokens=50k,time=5m`: what a session may spend, as a person writes it.

Numbers that a person types as options.
"""

import argparse
import math
import re
from decimal import Decimal

from holdfast.core import DIMENSIONS, Limits
from holdfast.core.errors import InvalidInput

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


_NAMES = {"usd": "cost_usd", "cost": "cost_usd", "time": "wall_seconds", "bytes": "bytes_written"}
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)([a-zA-Z]*)")
_UNITS: dict[str, dict[str, int]] = {
    "wall_seconds": {"": 1, "s": 1, "m": 60, "h": 3600},
    "cost_usd": {"": 1},
}
_SIZES = {"": 1, "k": 1_000, "m": 1_000_000}


def parse_limits(text: str) -> Limits:
    """The limits in a line such as `usd=1,tokens=50k,time=5m`. Raises InvalidInput."""
    bounds: dict[str, int | float | Decimal] = {}
    for part in text.split(","):
        name, _, amount = part.strip().partition("=")
        dimension = _NAMES.get(name, name)
        found = _AMOUNT.fullmatch(amount)
        units = _UNITS.get(dimension, _SIZES)
        if dimension not in DIMENSIONS or found is None or found[2].lower() not in units:
            raise InvalidInput(
                f"{part.strip()!r} is no limit",
                hint=f"as in usd=1,tokens=50k,time=5m; one of {', '.join(_NAMES)}, {', '.join(DIMENSIONS)}",
            )
        number = Decimal(found[1]) * units[found[2].lower()]
        kinds = {"cost_usd": Decimal, "wall_seconds": float}
        bounds[dimension] = kinds.get(dimension, int)(number)
    return Limits(**bounds)  # type: ignore[arg-type]  # each bound has the type of its dimension
