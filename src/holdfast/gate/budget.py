"""The budget: what may still be spent, for the turn and for the session.

Reserve before, settle after. A reservation counts as spent until it is settled, so concurrent calls cannot together
pass a limit that each alone would keep.
"""

from decimal import Decimal

from holdfast.core import DIMENSIONS, Amount, Dimension, Limits, Value
from holdfast.core.errors import BudgetExceeded
from holdfast.core.events import (
    AnyEvent,
    BudgetRaised,
    CallSettled,
    CodePosted,
    HistoryCompacted,
    MessagePosted,
    ModelFailed,
    ModelReplied,
    Recorded,
    SessionOpened,
    TurnEnded,
)
from holdfast.core.fold import Fold
from holdfast.store import Journal

WARN_AT = 0.8


class Reservation(Value):
    """Room that is held until it is settled."""

    number: int
    amount: Amount


class Budget(Fold):
    """What a session and its running turn have spent, folded from the journal; reservations are on top of it."""

    def __init__(self, journal: Journal, *, turn_limits: Limits) -> None:
        self.turn_limits = turn_limits
        super().__init__(journal)

    def reset(self) -> None:
        self.limits = Limits()
        self.spent = Amount()
        self.turn_spent = Amount()
        self._held: dict[int, Amount] = {}
        self._next = 0
        self._warned: set[Dimension] = set()

    def apply(self, event: AnyEvent, entry: Recorded) -> None:
        match event:
            case SessionOpened():
                self.limits = event.limits
            case BudgetRaised():
                self.limits = event.limits
                self._warned.clear()
            case MessagePosted() | CodePosted():
                self.turn_spent = Amount()
                self._add(Amount(iterations=1))
            case ModelReplied() | ModelFailed():
                self._add(Amount.of(event.usage))
            case HistoryCompacted():
                self._add(Amount.of(event.usage))
            case CallSettled():
                self._add(event.amount.plus(Amount(calls=1)))
            case TurnEnded():
                self._add(Amount(wall_seconds=event.wall_seconds))
            case _:
                pass

    def reserve(self, amount: Amount) -> Reservation:
        """Hold room for something about to happen. Raises BudgetExceeded, naming the dimension without room."""
        for dimension in DIMENSIONS:
            room = self.remaining(dimension)
            wanted = getattr(amount, dimension)
            if room is not None and (wanted is None or _exact(wanted) > room):
                raise BudgetExceeded(
                    f"the budget for {dimension} has {_plain(room)} left, the next step needs {_plain(wanted)}",
                    dimension=dimension,
                    hint="raise the limit to go on; what was done is kept",
                )
        self._next += 1
        self._held[self._next] = amount
        return Reservation(number=self._next, amount=amount)

    def release(self, reservation: Reservation) -> None:
        """Give the room back; what was really spent comes with the event that records it."""
        self._held.pop(reservation.number, None)

    def remaining(self, dimension: Dimension) -> Decimal | None:
        """How much is left in the tighter of turn and session; None without a limit. An unknown price leaves nothing."""
        held = [getattr(amount, dimension) for amount in self._held.values()]
        rooms = [
            _left(bound, [getattr(spent, dimension), *held])
            for limits, spent in ((self.limits, self.spent), (self.turn_limits, self.turn_spent))
            if (bound := getattr(limits, dimension)) is not None
        ]
        return min(rooms) if rooms else None

    def nearly_spent(self) -> list[tuple[Dimension, str, str]]:
        """Dimensions that passed four fifths of their limit since last asked: name, spent, limit."""
        found: list[tuple[Dimension, str, str]] = []
        for dimension in DIMENSIONS:
            bound, spent = getattr(self.limits, dimension), getattr(self.spent, dimension)
            if not bound or spent is None or dimension in self._warned:
                continue
            if float(spent) >= WARN_AT * float(bound):
                self._warned.add(dimension)
                found.append((dimension, _plain(spent), _plain(bound)))
        return found

    def _add(self, amount: Amount) -> None:
        self.spent = self.spent.plus(amount)
        self.turn_spent = self.turn_spent.plus(amount)


_Number = int | float | Decimal


def _left(bound: _Number, spent: list[_Number | None]) -> Decimal:
    if any(each is None for each in spent):
        return Decimal(0)
    return max(
        Decimal(0), _exact(bound) - sum((_exact(each) for each in spent if each is not None), Decimal(0))
    )


def _exact(number: _Number) -> Decimal:
    # By its text: 0.1 is a tenth here, not the nearest binary fraction.
    return number if isinstance(number, Decimal) else Decimal(str(number))


def _plain(number: _Number | None) -> str:
    return (
        "an unknown amount"
        if number is None
        else f"{number:,.6g}"
        if isinstance(number, float)
        else str(number)
    )
