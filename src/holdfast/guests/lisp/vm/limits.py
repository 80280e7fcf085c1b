"""Limits of a run (`Meter`), and budgets of a part of a program (`with-budget`, `ScopedBudget`).

Reaching a limit of the run ends it with an error that names the limit. A budget of N units permits N, never N+1, and what
an inner budget spends is also charged to the budgets around it.
"""

import math
from typing import final

from holdfast.guests.contract import GuestLimits
from holdfast.guests.lisp.data import Datum
from holdfast.guests.lisp.errors import LimitReached, LispError, LispException

MAX_OBJECT_BYTES = 64 << 20
"""A million pairs. The session must save everything that a run keeps, and Python's collector must traverse it."""
LONG_TEXT_CHARACTERS = 1000
"""A longer string counts as text: no collector traverses it."""
MAX_TOTAL_BYTES = 128 << 20
"""Objects and text together. The interpreter runs in the process of the host, whose memory all sessions share."""
MAX_SAVED_TEXT_BYTES = 64 << 20
"""Long texts that a program keeps in variables, or while it waits: saving them takes two copies."""
BYTES_PER_STEP = 64
"""An upper estimate of what an instruction allocates; anything larger is charged separately."""


@final
class Meter:
    """Counts the steps, calls, output, time and memory of one run."""

    def __init__(self, limits: GuestLimits) -> None:
        self.limits = limits
        self.memory_bytes = min(limits.memory_bytes, MAX_TOTAL_BYTES)
        self.object_bytes = min(limits.memory_bytes, MAX_OBJECT_BYTES)
        self.steps = 0
        self.calls = 0
        self.seconds = 0.0
        self.wall_seconds = 0.0
        self.output: list[str] = []
        self.output_bytes = 0
        self.live_bytes = 0
        """The size of everything reachable at the last measurement, except long texts."""
        self.new_bytes = 0
        """An upper estimate of the allocations since then."""
        self.text_bytes = 0
        """The size of the reachable long texts at the last measurement."""
        self.new_text_bytes = 0
        """An upper estimate of the texts since then."""
        self.is_measured = False
        """Whether memory was measured and nothing has run since."""

    def available_steps(self, wanted: int) -> int:
        """How many of the wanted steps may run. Raises LimitReached if none may."""
        if self.limits.steps is None:
            return wanted
        left = self.limits.steps - self.steps
        if left <= 0:
            raise LimitReached(
                "steps", f"the run used all of its {self.limits.steps} steps; raise the limit or do less"
            )
        return min(wanted, left)

    def count_steps(self, steps: int) -> None:
        """Count steps that ran."""
        self.steps += steps
        self.new_bytes += steps * BYTES_PER_STEP

    def count_seconds(self, *, own: float, wall: float) -> None:
        """Count the CPU time of the program, and the elapsed time except waiting for calls."""
        self.seconds += own
        self.wall_seconds += wall
        if self.seconds > self.limits.seconds:
            raise LimitReached("seconds", f"the run used more than {self.limits.seconds:g} s of CPU time")
        if self.wall_seconds > self.limits.wall_seconds:
            raise LimitReached("wall_seconds", f"the run took longer than {self.limits.wall_seconds:g} s")

    def count_call(self) -> None:
        """Count a call to the host before it is made."""
        if self.calls >= self.limits.calls:
            raise LimitReached(
                "calls", f"the run made all of its {self.limits.calls} calls; raise the limit or make fewer"
            )
        self.calls += 1

    def print(self, text: str) -> None:
        """Add output. Output beyond the limit is cut off and ends the run."""
        room = self.limits.output_bytes - self.output_bytes
        encoded = text.encode()
        if len(encoded) > room:
            self.output.append(encoded[:room].decode(errors="ignore"))
            self.output_bytes = self.limits.output_bytes
            raise LimitReached("output_bytes", f"the run printed more than {self.limits.output_bytes} bytes")
        self.output.append(text)
        self.output_bytes += len(encoded)

    @property
    def may_exceed_saved_text(self) -> bool:
        """Whether the long texts must be measured before they are saved."""
        return self.text_bytes + self.new_text_bytes > MAX_SAVED_TEXT_BYTES

    @property
    def needs_memory_check(self) -> bool:
        """Whether memory must be measured before the run continues."""
        return not self.has_room(0)

    def has_room(self, size: int, *, text: int = 0) -> bool:
        """Whether this many bytes of objects and of text certainly fit."""
        objects = self.live_bytes + self.new_bytes + size
        return (
            objects <= self.object_bytes
            and objects + self.text_bytes + self.new_text_bytes + text <= self.memory_bytes
        )

    def record_live_bytes(self, size: int, *, text: int) -> None:
        """Record a measurement of objects and long texts. Raises LimitReached if it exceeds the limit."""
        self.live_bytes, self.new_bytes = size, 0
        self.text_bytes, self.new_text_bytes = text, 0
        self.is_measured = True
        if size > self.object_bytes:
            raise LimitReached("memory_bytes", f"the run uses more than {self.object_bytes} bytes")
        if size + text > self.memory_bytes:
            raise LimitReached("memory_bytes", f"the run uses more than {self.memory_bytes} bytes")


MAX_DEPTH = 100
"""Nesting of budgets: each charge visits all budgets around it."""
DIMENSIONS = ("tokens", "cost", "time", "iterations", "calls", "steps")
ALIASES = {"usd": "cost"}
"""The word of every other budget; images hold `cost`."""


class BudgetExhausted(LispException):
    """A `with-budget` has nothing left of a dimension."""

    def __init__(self, budget: "ScopedBudget", dimension: str) -> None:
        super().__init__(f"the budget for {dimension} is exhausted")
        self.budget, self.dimension = budget, dimension


@final
class ScopedBudget:
    """The limits of a part of a program, within those of the part around it."""

    __slots__ = ("depth", "limits", "outer", "used")

    def __init__(self, limits: dict[str, float], outer: "ScopedBudget | None") -> None:
        self.limits, self.outer = limits, outer
        self.depth: int = 1 if outer is None else outer.depth + 1
        if self.depth > MAX_DEPTH:
            raise LispError("too-deep", f"budgets nest at most {MAX_DEPTH} deep")
        self.used: dict[str, float] = dict.fromkeys(limits, 0)

    def remaining(self, dimension: str) -> float | None:
        """What is left in this budget and those around it; None if unlimited."""
        smallest: float | None = None
        budget: ScopedBudget | None = self
        while budget is not None:
            limit = budget.limits.get(dimension)
            if limit is not None:
                left = max(0, limit - budget.used[dimension])
                smallest = left if smallest is None else min(smallest, left)
            budget = budget.outer
        return smallest

    def reserve(self, dimension: str, amount: float = 1) -> None:
        """Charge in advance. Raises BudgetExhausted for the innermost budget that has too little left."""
        budget: ScopedBudget | None = self
        while budget is not None:
            if dimension in budget.limits and budget.used[dimension] + amount > budget.limits[dimension]:
                raise BudgetExhausted(budget, dimension)
            budget = budget.outer
        self.charge(dimension, amount)

    def check(self, dimension: str) -> None:
        """Check that something is left, before a call of unknown cost. Raises BudgetExhausted."""
        budget: ScopedBudget | None = self
        while budget is not None:
            if dimension in budget.limits and budget.used[dimension] >= budget.limits[dimension]:
                raise BudgetExhausted(budget, dimension)
            budget = budget.outer

    def charge(self, dimension: str, amount: float) -> None:
        """Charge what was spent to this budget and those around it; the last charge may exceed the limit."""
        budget: ScopedBudget | None = self
        while budget is not None:
            if dimension in budget.limits:
                budget.used[dimension] += amount
            budget = budget.outer

    def exhausted(self) -> tuple["ScopedBudget", str] | None:
        """The innermost exhausted budget of steps or time, and its dimension."""
        budget: ScopedBudget | None = self
        while budget is not None:
            for dimension in ("steps", "time"):
                if dimension in budget.limits and budget.used[dimension] >= budget.limits[dimension]:
                    return budget, dimension
            budget = budget.outer
        return None


def parse_limits(table: Datum) -> dict[str, float]:
    """Parse a table such as `{:iterations 3 :tokens 1000}`; nil means unlimited."""
    if not isinstance(table, dict):
        raise LispError("type-error", "with-budget takes a table of limits, such as {:iterations 3}")
    limits: dict[str, float] = {}
    for name, limit in table.items():
        dimension = ALIASES.get(name, name)
        if dimension not in DIMENSIONS:
            raise LispError(
                "type-error", f"{dimension!r} is not a budget dimension; use one of {', '.join(DIMENSIONS)}"
            )
        if limit is None:
            continue
        if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not 0 <= limit < math.inf:
            raise LispError("type-error", f"the limit of {dimension} must be a number of 0 or more")
        limits[dimension] = limit
    return limits
