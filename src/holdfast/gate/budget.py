"""The budget: what may still be spent by the turn, the session and the tree of forks it belongs to.

Reserve before, settle after. A reservation counts as spent until it is settled, so concurrent calls cannot together
exceed a limit that each of them alone would keep.
"""

import math
from decimal import Decimal

from holdfast.core import DIMENSIONS, Amount, CallId, Dimension, Limits, Total, Value, budget_word
from holdfast.core.errors import BudgetExceeded
from holdfast.core.events import (
    BudgetRaised,
    BudgetWarned,
    CallSettled,
    CodePosted,
    Event,
    HistoryCompacted,
    MessagePosted,
    ModelFailed,
    ModelReplied,
    RecordedEvent,
    SessionOpened,
    SessionTitled,
    TurnEnded,
    TurnParked,
)
from holdfast.core.projection import EventSource, Projection, imported_limits, imported_through
from holdfast.gate.tree_budget import CombinedTreeBudget, TreeBudget, check_spent, exact, left, plain

WARN_AT = 0.8


class Reservation(Value):
    """A reserved amount; `tree` is the number of the matching reservation in the shared budget."""

    number: int
    amount: Amount
    call: CallId | None = None
    tree: int | None = None


Spending = (
    MessagePosted
    | CodePosted
    | ModelReplied
    | ModelFailed
    | HistoryCompacted
    | SessionTitled
    | CallSettled
    | TurnEnded
    | TurnParked
)
"""Events that record spending."""

_TURN_ENDINGS = (TurnEnded, TurnParked)
_Handled = Spending | SessionOpened | BudgetRaised | BudgetWarned


class Budget(Projection[_Handled]):
    """What a session and its running turn have spent, projected from the journal, plus open reservations."""

    def __init__(self, journal: EventSource, *, turn_limits: Limits, tree: TreeBudget | None = None) -> None:
        self._configured = turn_limits
        self._tree: TreeBudget | None = None
        self._last_charged = 0
        self._imported_through = imported_through(journal.recorded)
        self._imported_limits = imported_limits(journal.recorded)
        self._paid = Total()
        """Not part of `reset`: a rewind does not bring money back."""
        super().__init__(journal)
        # Set last: what the journal already holds was charged when it happened.
        self._tree = tree

    def reset(self) -> None:
        self.limits = Limits()
        self.turn_limits = self._configured
        self._spent = Total()
        self._turn_spent = Total()
        self.applied_requests: set[str] = set()
        """Names of the control requests that are already applied."""
        self._held: dict[int, Amount] = {}
        self._last_number = 0
        self._by_call: dict[CallId, Reservation] = {}
        """Reservations of calls that have no recorded outcome yet."""
        self._deferred: dict[CallId, Amount] = {}
        """What calls spent whose outcome is not on disk yet."""
        self._time_reservations: list[Reservation] = []
        """Time reserved by the running turn."""
        self._warned: set[Dimension] = set()
        self._update_limited()

    def apply(self, event: _Handled, entry: RecordedEvent) -> None:
        match event:
            case CallSettled():
                self._deferred.pop(event.call, None)
                if (held := self._by_call.get(event.call)) is not None:
                    self.release(held)
            case SessionOpened():
                self.limits = self._limits_of(event, entry)
                self._update_limited()
            case BudgetRaised():
                self.limits = self._limits_of(event, entry)
                self.turn_limits = self.turn_limits.raised(event.added)
                self.applied_requests.add(event.request)
                self._warned.clear()
                self._update_limited()
            case MessagePosted() | CodePosted():
                self._turn_spent = Total()
                self.turn_limits = self._configured
            case BudgetWarned():
                self._warned.update(each for each in DIMENSIONS if each == event.dimension)
            case _:
                pass
        amount = cost_of(event)
        if amount is not None:
            self._spent.add(amount)
            self._turn_spent.add(amount)
        self._charge_tree(event, entry, amount)
        if isinstance(event, _TURN_ENDINGS):
            while self._time_reservations:
                self.release(self._time_reservations.pop())

    def _limits_of(self, event: SessionOpened | BudgetRaised, entry: RecordedEvent) -> Limits:
        """The limits of an event; those of a file give way to the ones that this machine chose."""
        if self._imported_limits is not None and entry.seq <= self._imported_through:
            return self._imported_limits
        return event.limits

    def _charge_tree(self, event: Event, entry: RecordedEvent, amount: Amount | None) -> None:
        """Charge the shared budget. A rewind restores the session, not what the tree has spent."""
        if entry.seq <= self._last_charged:
            return
        self._last_charged = entry.seq
        if amount is not None:
            self._paid.add(amount)
        if self._tree is not None and amount is not None:
            self._tree.charge(amount)
        if self._tree is not None and isinstance(event, BudgetRaised):
            self._tree.add(event.added)

    @property
    def spent(self) -> Amount:
        """What the session has spent on the turns that are in effect. A rewind lowers it; the limits count it."""
        return self._spent.amount()

    @property
    def paid(self) -> Amount:
        """What the session has really spent, including the turns that were rewound."""
        return self._paid.amount()

    @property
    def turn_spent(self) -> Amount:
        """What the last turn has spent."""
        return self._turn_spent.amount()

    def join_tree(self, tree: TreeBudget) -> None:
        """From now on, also spend from this shared budget."""
        self._tree = tree if self._tree is None else CombinedTreeBudget(self._tree, tree)

    async def check(self) -> None:
        """Raise BudgetExceeded if a limit is already exceeded or the time is up."""
        check_spent(self.limits, self.spent)
        check_spent(self.turn_limits, self.turn_spent)
        if self._tree is not None:
            await self._tree.check()

    async def synchronize(self) -> None:
        """Let the other sessions of the tree know what this one spent, and learn what they spent."""
        if self._tree is not None:
            await self._tree.synchronize()

    async def reserve(self, amount: Amount, *, call: CallId | None = None) -> Reservation:
        """Reserve an amount before spending it. Raises BudgetExceeded, naming the dimension that is too low.

        The event that records a call's outcome releases its reservation.
        """
        for dimension in self._limited:
            room = self._own_room(dimension)
            wanted = getattr(amount, dimension)
            if room is not None and (wanted is None or exact(wanted) > room):
                raise BudgetExceeded(
                    f"the budget for {budget_word(dimension)} has {plain(room)} left, but the next step needs {plain(wanted)}",
                    dimension=dimension,
                    hint="raise the limit with: holdfast budget add; completed work is kept",
                )
        self._last_number += 1
        number = self._last_number
        self._held[number] = amount  # before the wait, so that calls at once cannot both find the same room
        try:
            held = await self._tree.reserve(amount) if self._tree is not None else None
        except BaseException:
            self._held.pop(number, None)
            raise
        reservation = Reservation(number=number, amount=amount, call=call, tree=held)
        if call is not None:
            self._by_call[call] = reservation
        return reservation

    def release(self, reservation: Reservation) -> None:
        """Release a reservation. What was really spent is charged by the event that records it."""
        self._held.pop(reservation.number, None)
        if reservation.call is not None:
            self._by_call.pop(reservation.call, None)
        if self._tree is not None and reservation.tree is not None:
            self._tree.release(reservation.tree)

    def record_deferred(self, settled: CallSettled) -> None:
        """Count an outcome whose record may not be on disk yet."""
        if settled.call in self._by_call:
            self._deferred[settled.call] = _cost_of_call(settled)

    async def reserve_time(self) -> float | None:
        """Reserve part of the remaining time for the running turn and return it in seconds; None without a limit.

        Raises BudgetExceeded when the time is up. `TurnEnded` and `TurnParked` charge the time used and release the rest.
        """
        await self.synchronize()
        left = self.remaining("wall_seconds")
        if left is None:
            return None
        seconds = _time_slice(float(left))
        if not seconds:
            raise BudgetExceeded(
                "the time is up",
                dimension="wall_seconds",
                hint="raise the limit with: holdfast budget add; completed work is kept",
            )
        self._time_reservations.append(await self.reserve(Amount(wall_seconds=seconds)))
        return seconds

    def remaining(self, dimension: Dimension) -> Decimal | None:
        """How much is left in the tightest of turn, session and tree; None without a limit. An unknown price leaves nothing.

        What other sessions of the tree spent is known as of this session's last step.
        """
        rooms = [self._own_room(dimension)]
        if self._tree is not None:
            rooms.append(self._tree.remaining(dimension))
        return min((room for room in rooms if room is not None), default=None)

    def remaining_all(self) -> dict[str, Decimal | None]:
        """How much is left in each dimension, by its word as in `--budget`: usd, tokens, time. None means no limit."""
        return {budget_word(dimension): self.remaining(dimension) for dimension in DIMENSIONS}

    def has_remaining(self) -> bool:
        """Whether the limits of session and tree leave something in every dimension. A new turn gets new turn limits."""
        return all(room is None or room > 0 for room in map(self._session_room, DIMENSIONS))

    def is_turn_limit(self, dimension: Dimension) -> bool:
        """Whether the turn limit is lower than what session and tree have left, so that a new turn has room."""
        room, bound = self._session_room(dimension), getattr(self.turn_limits, dimension)
        if room is None or bound is None:
            return room is None
        return left(bound, [getattr(self._turn_spent, dimension)]) < room

    def _session_room(self, dimension: Dimension) -> Decimal | None:
        rooms = [self._tree.remaining(dimension)] if self._tree is not None else []
        if (bound := getattr(self.limits, dimension)) is not None:
            held = [getattr(amount, dimension) for amount in self._held.values()]
            rooms.append(left(bound, [getattr(self._spent, dimension), *held]))
        return min((room for room in rooms if room is not None), default=None)

    def _update_limited(self) -> None:
        """Cache the dimensions that have a limit: every call checks each of them, and most sessions have few."""
        self._limited = tuple(
            each
            for each in DIMENSIONS
            if getattr(self.limits, each) is not None or getattr(self.turn_limits, each) is not None
        )

    def _own_room(self, dimension: Dimension) -> Decimal | None:
        """What the limits of turn and session leave."""
        bounds = [
            (bound, getattr(spent, dimension))
            for limits, spent in ((self.limits, self._spent), (self.turn_limits, self._turn_spent))
            if (bound := getattr(limits, dimension)) is not None
        ]
        if not bounds:
            return None
        held = [getattr(amount, dimension) for amount in self._held.values()]
        return min(left(bound, [spent, *held]) for bound, spent in bounds)

    def take_new_warnings(self) -> list[tuple[Dimension, str, str]]:
        """Dimensions that passed 80% of their limit since the last call: name, spent, limit."""
        found: list[tuple[Dimension, str, str]] = []
        for dimension in self._limited:
            bound, spent = getattr(self.limits, dimension), getattr(self._known_spent(), dimension)
            if not bound or spent is None or dimension in self._warned:
                continue
            if float(spent) >= WARN_AT * float(bound):
                self._warned.add(dimension)
                found.append((dimension, plain(spent), plain(bound)))
        return found

    def _known_spent(self) -> Amount:
        spent = self.spent
        for amount in self._deferred.values():
            spent = spent.plus(amount)
        return spent


_NOTHING, _ONE_CALL, _ONE_ITERATION = Amount(), Amount(calls=1), Amount(iterations=1)
_MIN_SLICE_SECONDS, _MAX_SLICE_SECONDS = 1.0, 86_400.0


def _time_slice(left: float) -> float:
    """A quarter of what is left, so that later turns find some; not too little, because each slice costs a write."""
    seconds = min(max(left / 4, min(left, _MIN_SLICE_SECONDS)), _MAX_SLICE_SECONDS)
    return (
        math.floor(seconds * 1_000_000) / 1_000_000
    )  # as precise as time is recorded, and never more than is left


def cost_of(event: Event) -> Amount | None:
    """What an event says was spent; None if it records no spending."""
    match event:
        case CallSettled():
            return _cost_of_call(event)
        case ModelReplied() | ModelFailed() | HistoryCompacted() | SessionTitled():
            return Amount.of(event.usage)
        case MessagePosted() | CodePosted():
            return _ONE_ITERATION
        case TurnEnded() | TurnParked():
            return Amount(wall_seconds=event.wall_seconds)
        case _:
            return None


def _cost_of_call(settled: CallSettled) -> Amount:
    return _ONE_CALL if settled.amount == _NOTHING else settled.amount.plus(_ONE_CALL)
