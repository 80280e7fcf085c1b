"""What a `with-budget` may still spend. N units are usable, never N+1; what a part spends, the whole has spent."""

import math
from typing import final

from holdfast.guests.lisp.data import Datum
from holdfast.guests.lisp.faults import Fault, LispTrouble

MAX_DEPTH = 100
"""Every charge walks through the budgets around it."""
DIMENSIONS = ("tokens", "cost", "time", "iterations", "calls", "steps")


class BudgetSpent(LispTrouble):
    """A `with-budget` has nothing left of a dimension."""

    def __init__(self, budget: "Budget", dimension: str) -> None:
        super().__init__(f"the budget of {dimension} is spent")
        self.budget, self.dimension = budget, dimension


@final
class Budget:
    """Limits of a part of a program, inside those of the part around it."""

    __slots__ = ("depth", "limits", "outer", "used")

    def __init__(self, limits: dict[str, float], outer: "Budget | None") -> None:
        self.limits, self.outer = limits, outer
        self.depth: int = 1 if outer is None else outer.depth + 1
        if self.depth > MAX_DEPTH:
            raise Fault("too-deep", f"budgets nest at most {MAX_DEPTH} deep")
        self.used: dict[str, float] = dict.fromkeys(limits, 0)

    def room(self, dimension: str) -> float | None:
        """What is left here and in everything around; None is no bound."""
        least: float | None = None
        budget: Budget | None = self
        while budget is not None:
            limit = budget.limits.get(dimension)
            if limit is not None:
                left = max(0, limit - budget.used[dimension])
                least = left if least is None else min(least, left)
            budget = budget.outer
        return least

    def reserve(self, dimension: str, amount: float = 1) -> None:
        """Charge before it happens; the innermost budget that has no room for it ends."""
        budget: Budget | None = self
        while budget is not None:
            if dimension in budget.limits and budget.used[dimension] + amount > budget.limits[dimension]:
                raise BudgetSpent(budget, dimension)
            budget = budget.outer
        self.settle(dimension, amount)

    def check(self, dimension: str) -> None:
        """Before something whose price is not known yet: some room has to be left, here and in everything around."""
        budget: Budget | None = self
        while budget is not None:
            if dimension in budget.limits and budget.used[dimension] >= budget.limits[dimension]:
                raise BudgetSpent(budget, dimension)
            budget = budget.outer

    def settle(self, dimension: str, amount: float) -> None:
        """Charge what was spent, here and in everything around; the last unit may overshoot."""
        budget: Budget | None = self
        while budget is not None:
            if dimension in budget.limits:
                budget.used[dimension] += amount
            budget = budget.outer

    def exhausted(self) -> tuple["Budget", str] | None:
        """The innermost budget of steps or time that is spent, and its dimension."""
        budget: Budget | None = self
        while budget is not None:
            for dimension in ("steps", "time"):
                if dimension in budget.limits and budget.used[dimension] >= budget.limits[dimension]:
                    return budget, dimension
            budget = budget.outer
        return None


def parse_limits(table: Datum) -> dict[str, float]:
    """The limits of a table such as `{:iterations 3 :tokens 1000}`; nil is no bound."""
    if not isinstance(table, dict):
        raise Fault("type-error", "with-budget takes a table of limits, such as {:iterations 3}")
    limits: dict[str, float] = {}
    for dimension, limit in table.items():
        if dimension not in DIMENSIONS:
            raise Fault(
                "type-error", f"{dimension!r} is no dimension of a budget; there are {', '.join(DIMENSIONS)}"
            )
        if limit is None:
            continue
        if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not 0 <= limit < math.inf:
            raise Fault("type-error", f"the limit of {dimension} is a number from 0 up")
        limits[dimension] = limit
    return limits
