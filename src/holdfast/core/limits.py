"""Budgets: limits, amounts, and the table of dimensions with the words that people use for them.

`None` in a limit means no limit. In an amount every dimension is a number except `cost_usd`, where None means that the price
is unknown. An unknown price is never counted as 0.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_DOWN, Decimal
from typing import Literal, NamedTuple, TypeVar

from holdfast.core.errors import InvalidInput
from holdfast.core.messages import Usage
from holdfast.core.values import Value

Dimension = Literal["tokens", "cost_usd", "wall_seconds", "steps", "calls", "iterations", "bytes_written"]
"""The field names of `Limits` and `Amount`, which are also the names on disk."""

_MAX_LIMIT = 2**63 - 1
"""More than anyone can spend, and a number that every reader of the journal accepts."""
_THOUSANDS = {"": 1, "k": 1_000, "m": 1_000_000}
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)([a-zA-Z]*)")


class BudgetDimension(NamedTuple):
    """One dimension of a budget: its field, its word on every surface, and how its numbers are read and written."""

    field: Dimension
    word: str
    unit: str
    kind: type[int] | type[float] | type[Decimal] = int
    suffixes: Mapping[str, int] = _THOUSANDS
    aliases: tuple[str, ...] = ()
    """Older words that are still accepted."""

    def parse(self, text: str) -> int | float | Decimal:
        """A quantity such as `50k`, `5m` or `1.50`. Raises InvalidInput."""
        found = _QUANTITY.fullmatch(text)
        suffix = found[2].lower() if found is not None else ""
        if found is None or suffix not in self.suffixes:
            allowed = ", ".join(filter(None, self.suffixes))
            raise InvalidInput(
                f"{text!r} is not a quantity of {self.word}",
                hint=f"a number of {self.unit}" + (f", optionally with one of {allowed}" if allowed else ""),
            )
        number = Decimal(found[1]) * self.suffixes[suffix]
        if self.kind is int and number % 1:
            raise InvalidInput(
                f"{self.word} is counted in whole {self.unit}, not {text}", hint=f"{self.word}=2"
            )
        return self.kind(number)

    def format(self, number: int | float | Decimal | None) -> str:
        """A number of this dimension for a table; None is an unknown price."""
        if number is None:
            return "unknown"
        return f"{number:,.2f}" if isinstance(number, float) else f"{number:,}"


BUDGET_DIMENSIONS = (
    BudgetDimension("tokens", "tokens", "tokens"),
    BudgetDimension("cost_usd", "usd", "US dollars", Decimal, {"": 1}, ("cost", "cost_usd")),
    BudgetDimension("wall_seconds", "time", "seconds", float, _SECONDS, ("wall_seconds",)),
    BudgetDimension("steps", "steps", "model requests"),
    BudgetDimension("calls", "calls", "calls"),
    BudgetDimension("iterations", "iterations", "turns"),
    BudgetDimension("bytes_written", "bytes", "bytes", aliases=("bytes_written",)),
)
"""Every dimension, in the order of `Limits`. A new one needs a row here, a field below and the place that charges it."""

DIMENSIONS: tuple[Dimension, ...] = tuple(each.field for each in BUDGET_DIMENSIONS)
BUDGET_WORDS: tuple[str, ...] = tuple(each.word for each in BUDGET_DIMENSIONS)
_BY_WORD = {word: each for each in BUDGET_DIMENSIONS for word in (each.word, *each.aliases)}


def budget_dimension(word: str) -> BudgetDimension:
    """The dimension that a person names by its word or an older one. Raises InvalidInput."""
    if word not in _BY_WORD:
        raise InvalidInput(f"a budget has no dimension {word!r}", hint=f"one of {', '.join(BUDGET_WORDS)}")
    return _BY_WORD[word]


def budget_word(field: str) -> str:
    """The word for a field: `cost_usd` -> `usd`."""
    return _BY_WORD[field].word if field in _BY_WORD else field


def parse_limits(text: str | Iterable[str]) -> "Limits":
    """The limits in `usd=1,tokens=50k,time=5m`, as one text or several. Raises InvalidInput."""
    parts = [part for each in ((text,) if isinstance(text, str) else text) for part in each.split(",")]
    bounds: dict[str, int | float | Decimal] = {}
    for part in map(str.strip, parts):
        word, equals, quantity = part.partition("=")
        if not equals:
            raise InvalidInput(
                f"{part!r} is not a limit",
                hint=f"for example usd=1,tokens=50k,time=5m; {', '.join(BUDGET_WORDS)}",
            )
        dimension = budget_dimension(word)
        if dimension.field in bounds:
            raise InvalidInput(f"{dimension.word} is given twice", hint="give each dimension once")
        bounds[dimension.field] = dimension.parse(quantity)
    return Limits(**bounds)  # type: ignore[arg-type]  # each bound has the type of its dimension


class Limits(Value):
    """Upper bounds: N units are usable, never N+1. None means no limit."""

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
                raise InvalidInput(f"a limit is 0 or more, but {budget_word(dimension)} is {bound}")
            if not isinstance(bound, float) and bound > _MAX_LIMIT:
                raise InvalidInput(
                    f"a limit is at most {_MAX_LIMIT:,}, but {budget_word(dimension)} is more",
                    hint="leave it out",
                )

    def narrowed(self, other: "Limits") -> "Limits":
        """Return the stricter limit of both in each dimension."""
        return Limits(**{each: _least(getattr(self, each), getattr(other, each)) for each in DIMENSIONS})

    def raised(self, added: "Limits") -> "Limits":
        """These limits plus `added`. A dimension without a limit stays without one."""
        return Limits(**{each: _sum(getattr(self, each), getattr(added, each)) for each in DIMENSIONS})

    def above(self, other: "Limits") -> "Limits":
        """By how much these limits are higher than `other`, where both have one."""
        return Limits(**{each: _difference(getattr(self, each), getattr(other, each)) for each in DIMENSIONS})

    def shares(self, weights: Sequence[int]) -> tuple["Limits", ...]:
        """These limits divided by weight, rounded down so that the shares together never exceed the whole."""
        whole = sum(weights)
        if whole <= 0 or any(weight < 0 for weight in weights):
            raise InvalidInput(f"weights are 0 or more and not all 0, but they are {list(weights)}")
        return tuple(
            Limits(**{each: _share(getattr(self, each), weight, whole) for each in DIMENSIONS})
            for weight in weights
        )


class Amount(Value):
    """How much was spent, or is about to be."""

    tokens: int = 0
    cost_usd: Decimal | None = Decimal(0)
    wall_seconds: float = 0.0
    steps: int = 0
    calls: int = 0
    iterations: int = 0
    bytes_written: int = 0

    def __post_init__(self) -> None:
        # Written out: every call and every projection makes amounts, and a loop over names costs five times as much.
        if not (
            self.tokens >= 0
            and (self.cost_usd is None or (self.cost_usd.is_finite() and self.cost_usd >= 0))
            and self.wall_seconds >= 0
            and self.steps >= 0
            and self.calls >= 0
            and self.iterations >= 0
            and self.bytes_written >= 0
        ):
            raise InvalidInput(f"every number of an amount is 0 or more: {self}")

    @classmethod
    def of(cls, usage: Usage) -> "Amount":
        """The amount to charge for one reply of a model."""
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
"""The shared default, which encoders recognize and omit."""


class Total:
    """A sum of amounts, updated in place: a new value for each would dominate the cost of reading a long history."""

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
