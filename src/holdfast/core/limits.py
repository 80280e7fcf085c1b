"""Limits and amounts of spending, with one number for each dimension.

In a limit, None means unlimited. In an amount every dimension is a number except `cost_usd`, where None means that the
price is unknown. An unknown price is never counted as 0.
"""

import math
from collections.abc import Sequence
from decimal import ROUND_DOWN, Decimal
from typing import Literal, TypeVar, get_args

from holdfast.core.errors import InvalidInput
from holdfast.core.messages import Usage
from holdfast.core.values import Value

Dimension = Literal["tokens", "cost_usd", "wall_seconds", "steps", "calls", "iterations", "bytes_written"]
DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)


_MAX_BOUND = 2**63 - 1
"""More than can ever be spent, and a number that every JSON reader accepts."""


class Limits(Value):
    """Upper bounds: N units can be used, never N+1. None means unlimited."""

    tokens: int | None = None
    cost_usd: Decimal | None = None
    wall_seconds: float | None = None
    steps: int | None = None
    calls: int | None = None
    iterations: int | None = None
    bytes_written: int | None = None

    def __post_init__(self) -> None:
        for dimension in DIMENSIONS:
            bound = getattr(self, dimension)
            if bound is None:
                continue
            if (not isinstance(bound, int) and math.isnan(bound)) or bound < 0:
                raise InvalidInput(f"a limit cannot be negative or NaN; {dimension} is {bound}")
            if not isinstance(bound, float) and bound > _MAX_BOUND:
                raise InvalidInput(
                    f"a limit can be at most {_MAX_BOUND:,}; {dimension} is larger",
                    hint="leave it out for no limit",
                )

    def narrowed(self, other: "Limits") -> "Limits":
        """Return the stricter limit of both in each dimension."""
        return Limits(**{each: _least(getattr(self, each), getattr(other, each)) for each in DIMENSIONS})

    def raised(self, added: "Limits") -> "Limits":
        """Return these limits plus an increase. An unlimited dimension stays unlimited."""
        return Limits(**{each: _sum(getattr(self, each), getattr(added, each)) for each in DIMENSIONS})

    def above(self, other: "Limits") -> "Limits":
        """Return by how much these limits exceed others, in dimensions where both are limited."""
        return Limits(**{each: _difference(getattr(self, each), getattr(other, each)) for each in DIMENSIONS})

    def shares(self, weights: Sequence[int]) -> tuple["Limits", ...]:
        """Divide these limits by weight, rounded down so that the shares together never exceed the whole."""
        whole = sum(weights)
        if whole <= 0 or any(weight < 0 for weight in weights):
            raise InvalidInput(f"weights must not be negative and not all be 0; they are {list(weights)}")
        return tuple(
            Limits(**{each: _share(getattr(self, each), weight, whole) for each in DIMENSIONS})
            for weight in weights
        )


class Amount(Value):
    """What was spent, or is about to be."""

    tokens: int = 0
    cost_usd: Decimal | None = Decimal(0)
    wall_seconds: float = 0.0
    steps: int = 0
    calls: int = 0
    iterations: int = 0
    bytes_written: int = 0

    def __post_init__(self) -> None:
        # Unrolled, because every call creates amounts, and a loop over names takes five times as long.
        if not (
            self.tokens >= 0
            and (self.cost_usd is None or (self.cost_usd.is_finite() and self.cost_usd >= 0))
            and self.wall_seconds >= 0
            and self.steps >= 0
            and self.calls >= 0
            and self.iterations >= 0
            and self.bytes_written >= 0
        ):
            raise InvalidInput(f"an amount cannot have negative numbers: {self}")

    @classmethod
    def of(cls, usage: Usage) -> "Amount":
        """The cost of one reply of a model."""
        return cls(tokens=usage.input_tokens + usage.output_tokens, cost_usd=usage.cost_usd, steps=1)

    def plus(self, other: "Amount") -> "Amount":
        """Add two amounts; an unknown price stays unknown."""
        cost = None if self.cost_usd is None or other.cost_usd is None else self.cost_usd + other.cost_usd
        return Amount(
            tokens=self.tokens + other.tokens,
            cost_usd=cost,
            wall_seconds=self.wall_seconds + other.wall_seconds,
            steps=self.steps + other.steps,
            calls=self.calls + other.calls,
            iterations=self.iterations + other.iterations,
            bytes_written=self.bytes_written + other.bytes_written,
        )


NOTHING = Amount()
"""A shared default, so that msgspec recognises it and omits it from encoded events."""


class Total:
    """A running sum of amounts. It changes in place, because a new value for each step would dominate a long replay."""

    def __init__(self) -> None:
        self.tokens, self.steps, self.calls, self.iterations, self.bytes_written = 0, 0, 0, 0, 0
        self.wall_seconds = 0.0
        self.cost_usd: Decimal | None = Decimal(0)

    def add(self, amount: Amount) -> None:
        """Add an amount; an unknown price stays unknown."""
        self.tokens += amount.tokens
        self.wall_seconds += amount.wall_seconds
        self.steps += amount.steps
        self.calls += amount.calls
        self.iterations += amount.iterations
        self.bytes_written += amount.bytes_written
        if self.cost_usd is not None:
            self.cost_usd = None if amount.cost_usd is None else self.cost_usd + amount.cost_usd

    def amount(self) -> Amount:
        """The sum so far."""
        return Amount(**{each: getattr(self, each) for each in DIMENSIONS})


_Number = TypeVar("_Number", int, float, Decimal)
_SMALLEST_PRICE = Decimal("0.000001")


def _share(bound: _Number | None, weight: int, whole: int) -> _Number | None:
    if bound is None:
        return None
    if isinstance(bound, Decimal):
        return (bound * weight / whole).quantize(_SMALLEST_PRICE, ROUND_DOWN)
    return bound * weight // whole if isinstance(bound, int) else bound * weight / whole


def _sum(bound: _Number | None, added: _Number | None) -> _Number | None:
    return bound if bound is None or added is None else bound + added


def _difference(higher: _Number | None, lower: _Number | None) -> _Number | None:
    return higher - lower if higher is not None and lower is not None and higher > lower else None


def _least(one: _Number | None, other: _Number | None) -> _Number | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
