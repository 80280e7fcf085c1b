"""Projections: state that is computed from the events of a journal, in order. Each package projects what it needs."""

from collections.abc import Iterable
from typing import Any, ClassVar, Generic, Protocol, TypeVar, get_args

from holdfast.core.errors import JournalDamaged
from holdfast.core.events import Event, RecordedEvent, SessionRewound


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
