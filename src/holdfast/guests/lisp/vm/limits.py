"""What a `with-budget` may still spend. N units are usable, never N+1; what a part spends, the whole has spent.

What a run has used of its limits. Reaching one ends the run with an error that names it and the way out.
"""

import math
from typing import final

from holdfast.guests.contract import GuestLimits
from holdfast.guests.lisp.data import Datum
from holdfast.guests.lisp.errors import LimitReached, LispError, LispTrouble

MAX_MEMORY_BYTES = 64 << 20
"""A million pairs. Whatever a run may hold, its session has to save behind it, and Python's collector to look through."""
BYTES_PER_STEP = 64
"""An upper estimate of what an instruction allocates; what may take more is charged by itself."""


@final
class Meter:
    """Counts steps, calls, output, time and memory of one run."""

    def __init__(self, limits: GuestLimits) -> None:
        self.limits = limits
        self.memory_bytes = min(limits.memory_bytes, MAX_MEMORY_BYTES)
        self.steps = 0
        self.calls = 0
        self.seconds = 0.0
        self.wall_seconds = 0.0
        self.output: list[str] = []
        self.output_bytes = 0
        self.live_bytes = 0
        """Found by the last look at what is reachable."""
        self.new_bytes = 0
        """An upper estimate of what was allocated since."""
        self.is_measured = False
        """Whether memory was just looked at and nothing ran since."""

    def room_for_steps(self, wanted: int) -> int:
        """How many of the wanted steps may run; at least one, or the run ends."""
        if self.limits.steps is None:
            return wanted
        left = self.limits.steps - self.steps
        if left <= 0:
            raise LimitReached(
                "steps", f"the run used all of its {self.limits.steps} steps; allow more or do less"
            )
        return min(wanted, left)

    def count_steps(self, steps: int) -> None:
        """Steps that ran."""
        self.steps += steps
        self.new_bytes += steps * BYTES_PER_STEP

    def count_seconds(self, *, own: float, wall: float) -> None:
        """Time of the processor that the program itself took, and time that went by while it was not waiting."""
        self.seconds += own
        self.wall_seconds += wall
        if self.seconds > self.limits.seconds:
            raise LimitReached(
                "seconds", f"the run took longer than {self.limits.seconds:g} s of its own time"
            )
        if self.wall_seconds > self.limits.wall_seconds:
            raise LimitReached("wall_seconds", f"the run took longer than {self.limits.wall_seconds:g} s")

    def count_call(self) -> None:
        """A call to the host that is about to be made."""
        if self.calls >= self.limits.calls:
            raise LimitReached(
                "calls", f"the run made all of its {self.limits.calls} calls; allow more or make fewer"
            )
        self.calls += 1

    def print(self, text: str) -> None:
        """Output; what does not fit is cut off, and the run ends."""
        room = self.limits.output_bytes - self.output_bytes
        encoded = text.encode()
        if len(encoded) > room:
            self.output.append(encoded[:room].decode(errors="ignore"))
            self.output_bytes = self.limits.output_bytes
            raise LimitReached("output_bytes", f"the run printed more than {self.limits.output_bytes} bytes")
        self.output.append(text)
        self.output_bytes += len(encoded)

    @property
    def is_crowded(self) -> bool:
        """Whether the memory in use has to be looked at before the run goes on."""
        return self.live_bytes + self.new_bytes > self.memory_bytes

    def has_room(self, size: int) -> bool:
        """Whether so many bytes surely fit."""
        return self.live_bytes + self.new_bytes + size <= self.memory_bytes

    def found_live(self, size: int) -> None:
        """What is reachable was looked at."""
        self.live_bytes, self.new_bytes, self.is_measured = size, 0, True
        if size > self.memory_bytes:
            raise LimitReached("memory_bytes", f"the run holds more than {self.memory_bytes} bytes")


MAX_DEPTH = 100
"""Every charge walks through the budgets around it."""
DIMENSIONS = ("tokens", "cost", "time", "iterations", "calls", "steps")
ALIASES = {"usd": "cost"}
"""The word of every other budget; images hold `cost`."""


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
            raise LispError("too-deep", f"budgets nest at most {MAX_DEPTH} deep")
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
        raise LispError("type-error", "with-budget takes a table of limits, such as {:iterations 3}")
    limits: dict[str, float] = {}
    for name, limit in table.items():
        dimension = ALIASES.get(name, name)
        if dimension not in DIMENSIONS:
            raise LispError(
                "type-error", f"{dimension!r} is no dimension of a budget; there are {', '.join(DIMENSIONS)}"
            )
        if limit is None:
            continue
        if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not 0 <= limit < math.inf:
            raise LispError("type-error", f"the limit of {dimension} is a number from 0 up")
        limits[dimension] = limit
    return limits
