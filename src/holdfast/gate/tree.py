"""The budget of a tree: what a session, its forks, its teams and its side models may spend together."""

from decimal import Decimal

from holdfast.core import DIMENSIONS, Amount, Dimension, Limits
from holdfast.core.errors import BudgetExceeded


class TreeBudget:
    """One purse for many sessions. Each session reserves here as well as in its own budget."""

    def __init__(self, limits: Limits, *, spent: Amount | None = None) -> None:
        self.limits = limits
        self.spent = spent or Amount()
        self._held: dict[int, Amount] = {}
        self._next = 0

    def reserve(self, amount: Amount) -> int:
        """Hold room for something about to happen anywhere in the tree. Raises BudgetExceeded."""
        for dimension in DIMENSIONS:
            room, wanted = self.remaining(dimension), getattr(amount, dimension)
            if room is not None and (wanted is None or exact(wanted) > room):
                raise BudgetExceeded(
                    f"the budget of the whole tree for {dimension} has {plain(room)} left, "
                    f"the next step needs {plain(wanted)}",
                    dimension=dimension,
                    hint="raise the limit of the first session to go on; what was done is kept",
                )
        self._next += 1
        self._held[self._next] = amount
        return self._next

    def release(self, number: int) -> None:
        """Give held room back."""
        self._held.pop(number, None)

    def charge(self, amount: Amount) -> None:
        """Count what a session of the tree has spent."""
        self.spent = self.spent.plus(amount)

    def remaining(self, dimension: Dimension) -> Decimal | None:
        """How much is left; None without a limit."""
        bound = getattr(self.limits, dimension)
        if bound is None:
            return None
        return left(
            bound, [getattr(self.spent, dimension), *(getattr(a, dimension) for a in self._held.values())]
        )


Number = int | float | Decimal


def left(bound: Number, spent: list[Number | None]) -> Decimal:
    """What a bound leaves after these; an unknown price leaves nothing."""
    if any(each is None for each in spent):
        return Decimal(0)
    return max(
        Decimal(0), exact(bound) - sum((exact(each) for each in spent if each is not None), Decimal(0))
    )


def exact(number: Number) -> Decimal:
    """The number by its text: 0.1 is a tenth here, not the nearest binary fraction."""
    return number if isinstance(number, Decimal) else Decimal(str(number))


def plain(number: Number | None) -> str:
    """The number for a person."""
    if number is None:
        return "an unknown amount"
    return f"{number:,.6g}" if isinstance(number, float) else f"{number:,}"
