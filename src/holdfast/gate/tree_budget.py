"""The shared budget of a session tree: what a session, its forks, its teams and its side models can spend together."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Protocol

from holdfast.core import DIMENSIONS, Amount, Dimension, Limits
from holdfast.core.errors import BudgetExceeded


class TreeBudget(Protocol):
    """The budget of a tree, as the budget of one of its sessions uses it."""

    async def check(self) -> None:
        """Raise BudgetExceeded if the tree has already exceeded a limit."""
        ...

    async def synchronize(self) -> None:
        """Let the other sessions of the tree know what was spent, released and added, and learn what they did."""
        ...

    async def reserve(self, amount: Amount) -> int:
        """Reserve an amount for something about to happen in the tree. Raises BudgetExceeded."""
        ...

    def release(self, number: int) -> None:
        """Release a reservation."""
        ...

    def charge(self, amount: Amount) -> None:
        """Add what a session of the tree has spent."""
        ...

    def add(self, added: Limits) -> None:
        """Raise the limits by what a person added to a session's limits."""
        ...

    def remaining(self, dimension: Dimension) -> Decimal | None:
        """Return how much is left; None if there is no limit."""
        ...


class InMemoryTreeBudget:
    """A shared budget in memory. Each session reserves here as well as in its own budget."""

    def __init__(self, limits: Limits, *, spent: Amount | None = None) -> None:
        self.limits = limits
        self.spent = spent or Amount()
        self._held: dict[int, Amount] = {}
        self._next = 0

    async def check(self) -> None:
        check_spent(self.limits, self.spent, whose=_WHOSE)

    async def synchronize(self) -> None:
        """All sessions use this object."""

    async def reserve(self, amount: Amount) -> int:
        check_room(amount, self.limits, [self.spent, *self._held.values()])
        self._next += 1
        self._held[self._next] = amount
        return self._next

    def release(self, number: int) -> None:
        self._held.pop(number, None)

    def charge(self, amount: Amount) -> None:
        self.spent = self.spent.plus(amount)

    def add(self, added: Limits) -> None:
        self.limits = self.limits.raised(added)

    def remaining(self, dimension: Dimension) -> Decimal | None:
        return room_for(dimension, self.limits, [self.spent, *self._held.values()])


class CombinedTreeBudget:
    """Two shared budgets, both of which must allow a step."""

    def __init__(self, one: TreeBudget, other: TreeBudget) -> None:
        self._one, self._other = one, other
        self._held: dict[int, tuple[int, int]] = {}
        self._next = 0

    async def check(self) -> None:
        await self._one.check()
        await self._other.check()

    async def synchronize(self) -> None:
        await self._one.synchronize()
        await self._other.synchronize()

    async def reserve(self, amount: Amount) -> int:
        first = await self._one.reserve(amount)
        try:
            second = await self._other.reserve(amount)
        except BaseException:
            self._one.release(first)
            raise
        self._next += 1
        self._held[self._next] = first, second
        return self._next

    def release(self, number: int) -> None:
        held = self._held.pop(number, None)
        if held is not None:
            self._one.release(held[0])
            self._other.release(held[1])

    def charge(self, amount: Amount) -> None:
        self._one.charge(amount)
        self._other.charge(amount)

    def add(self, added: Limits) -> None:
        self._one.add(added)
        self._other.add(added)

    def remaining(self, dimension: Dimension) -> Decimal | None:
        rooms = [self._one.remaining(dimension), self._other.remaining(dimension)]
        return min((room for room in rooms if room is not None), default=None)


_WHOSE = "the budget of the whole tree"


def check_room(wanted: Amount, limits: Limits, taken: Iterable[Amount]) -> None:
    """Raise BudgetExceeded where the tree has no room for an amount."""
    taken = tuple(taken)
    for dimension in DIMENSIONS:
        room, needed = room_for(dimension, limits, taken), getattr(wanted, dimension)
        if room is not None and (needed is None or exact(needed) > room):
            raise BudgetExceeded(
                f"{_WHOSE} for {dimension} has {plain(room)} left, the next step needs {plain(needed)}",
                dimension=dimension,
                hint="raise the limit to continue; completed work is kept",
            )


def check_spent(limits: Limits, spent: Amount, *, whose: str = "the budget") -> None:
    """Raise BudgetExceeded if a limit is already exceeded, or the time is used up."""
    for dimension in DIMENSIONS:
        bound, amount = getattr(limits, dimension), getattr(spent, dimension)
        is_up = dimension == "wall_seconds" and amount == bound
        if bound is not None and amount is not None and (amount > bound or is_up):
            raise BudgetExceeded(
                f"{whose} for {dimension} is spent: {plain(amount)} of {plain(bound)}",
                dimension=dimension,
                hint="raise the limit to continue; completed work is kept",
            )


def room_for(dimension: Dimension, limits: Limits, taken: Iterable[Amount]) -> Decimal | None:
    """Return what a limit leaves in one dimension; None if there is no limit."""
    bound = getattr(limits, dimension)
    return None if bound is None else left(bound, [getattr(amount, dimension) for amount in taken])


Number = int | float | Decimal


def left(bound: Number, spent: list[Number | None]) -> Decimal:
    """Return what a bound leaves after these amounts; an unknown price leaves nothing."""
    if any(each is None for each in spent):
        return Decimal(0)
    return max(
        Decimal(0), exact(bound) - sum((exact(each) for each in spent if each is not None), Decimal(0))
    )


def exact(number: Number) -> Decimal:
    """Convert a number by its decimal text: 0.1 is exactly a tenth, not the nearest binary fraction."""
    return number if isinstance(number, Decimal) else Decimal(str(number))


def plain(number: Number | None) -> str:
    """Format a number for the user."""
    if number is None:
        return "an unknown amount"
    return f"{number:,.6g}" if isinstance(number, float) else f"{number:,}"
