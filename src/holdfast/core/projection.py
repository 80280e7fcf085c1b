"""Projections: state that is computed from the events of a journal, in order. Each package projects what it needs."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar, get_args

from holdfast.core.errors import JournalDamaged
from holdfast.core.events import (
    BudgetRaised,
    CodePosted,
    Event,
    MessagePosted,
    Noted,
    RecordedEvent,
    SessionOpened,
    SessionRewound,
    Signer,
    TurnEnded,
    TurnReopened,
)
from holdfast.core.limits import Limits
from holdfast.core.outcomes import Nonconverged

THIS_HOME: tuple[Signer, ...] = ("this-home",)
KNOWN_SIGNERS: tuple[Signer, ...] = ("this-home", "trusted-home")
"""Whose files keep the words of the person, and the levels of what was read."""


def without_rewound(recorded: Iterable[RecordedEvent]) -> list[RecordedEvent]:
    """Return the events that are in effect: those that a rewind undid are left out, the rewind itself stays."""
    counted: list[RecordedEvent] = []
    for entry in recorded:
        if isinstance(entry.event, SessionRewound):
            # From the end, where the undone events are: a journal may have thousands of rewinds.
            while counted and counted[-1].seq > entry.event.seq:
                counted.pop()
        counted.append(entry)
    return counted


def imported_through(recorded: Iterable[RecordedEvent], *, trusted: Collection[Signer] = ()) -> int:
    """The position up to which a history came from a file, which anyone may have written; 0 if it did not.

    Files that a trusted signer signed do not count. A rewind does not change the position.
    """
    ends = [entry for entry in recorded if type(entry.event) in (Noted, SessionOpened)]
    return max((entry.seq for entry in ends if _ends_import(entry.event, trusted)), default=0)


def imported_limits(recorded: Iterable[RecordedEvent]) -> Limits | None:
    """The limits that this machine gave an imported session; None without an import, or if it kept those of its file.

    A rewind does not change that: what the file says about limits never counts.
    """
    limits: Limits | None = None
    is_imported = False
    for entry in recorded:
        event = entry.event
        if isinstance(event, BudgetRaised):
            if is_imported and limits is None and event.request == "import":
                limits = event.limits
        elif type(event) in (Noted, SessionOpened) and _ends_import(event, ()):
            is_imported, limits = True, event.limits if isinstance(event, SessionOpened) else None
    return limits


def signer_after(recorded: Sequence[RecordedEvent], seq: int) -> Signer:
    """Who signed the files that ended after a position: the least trusted of them."""
    if imported_through(recorded, trusted=KNOWN_SIGNERS) > seq:
        return ""
    return "trusted-home" if imported_through(recorded, trusted=THIS_HOME) > seq else "this-home"


def _ends_import(event: Event, trusted: Collection[Signer]) -> bool:
    if isinstance(event, SessionOpened):
        return event.is_imported and event.signer not in trusted  # a fork of an imported session
    return isinstance(event, Noted) and event.code == "imported" and event.signer not in trusted


def unfinished_turn(recorded: Iterable[RecordedEvent]) -> int | None:
    """The last turn, if it could go on: it has no end, or ran out of a budget that can be raised."""
    turn: int | None = None
    for entry in without_rewound(recorded):
        match entry.event:
            case MessagePosted() | CodePosted() | TurnReopened():
                turn = entry.event.turn
            case TurnEnded(outcome=outcome):
                can_go_on = isinstance(outcome, Nonconverged) and outcome.reason == "budget"
                turn = entry.event.turn if can_go_on else None
            case _:
                pass
    return turn


Handled = TypeVar("Handled", bound=Event)


class EventSource(Protocol):
    """What a projection follows: a journal, or events that were read from one."""

    @property
    def recorded(self) -> Iterable[RecordedEvent]:
        """All events so far."""
        ...

    def follow(self, follower: "Projection[Any]", /) -> None:
        """Call the follower with every event so far and with every future one."""
        ...


class ReplayedHistory:
    """A fixed list of events, to project a session that another process holds."""

    def __init__(self, recorded: Iterable[RecordedEvent]) -> None:
        self.recorded = tuple(recorded)

    def follow(self, follower: "Projection[Any]", /) -> None:
        for entry in self.recorded:
            follower(entry)


class Projection(Generic[Handled]):
    """State that follows a journal. A subclass names the events that it handles, as in `Projection[TurnEnded | Noted]`, and
    implements `reset` and `apply`.
    """

    _kinds: ClassVar[frozenset[type]]

    def __init_subclass__(cls) -> None:
        (handled,) = get_args(cls.__orig_bases__[0])  # type: ignore[attr-defined]  # set by Generic
        cls._kinds = frozenset(get_args(handled) or (handled,))

    def __init__(self, journal: EventSource) -> None:
        self._journal = journal
        self.reset()
        journal.follow(self)

    @classmethod
    def handles(cls, kind: type) -> bool:
        """Whether an event of this kind can change the state."""
        return kind in cls._kinds or kind is SessionRewound

    def reset(self) -> None:
        """Set the state to that before the first event."""
        raise NotImplementedError

    def apply(self, event: Handled, entry: RecordedEvent) -> None:
        """Update the state with one event."""
        raise NotImplementedError

    def __call__(self, entry: RecordedEvent) -> None:
        try:
            self._follow(entry)
        except (LookupError, ValueError, ArithmeticError, AssertionError) as problem:
            # A journal may come from somebody else: its events are valid one by one, but need not make sense in this order.
            raise JournalDamaged(
                f"event {entry.seq} of {entry.session!r} does not follow from the events before it",
                hint="holdfast verify shows what is wrong; holdfast export saves what can be read",
            ) from problem

    def _follow(self, entry: RecordedEvent) -> None:
        kind = type(entry.event)
        if kind in self._kinds:
            self.apply(entry.event, entry)  # type: ignore[arg-type]  # checked by its kind
        elif kind is SessionRewound:
            self.reset()
            for earlier in without_rewound(each for each in self._journal.recorded if each.seq <= entry.seq):
                if type(earlier.event) in self._kinds:
                    self.apply(earlier.event, earlier)  # type: ignore[arg-type]
