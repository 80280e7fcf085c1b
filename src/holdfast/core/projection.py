"""Folds: state that is nothing but the journal read in order. Every package folds the part it needs."""

from collections.abc import Iterable
from typing import Any, ClassVar, Generic, Protocol, TypeVar, get_args

from holdfast.core.events import AnyEvent, RecordedEvent, SessionRewound


def without_rewound(recorded: Iterable[RecordedEvent]) -> list[RecordedEvent]:
    """The events that count: what a rewind took back is left out, the rewind itself stays."""
    counted: list[RecordedEvent] = []
    for entry in recorded:
        if isinstance(entry.event, SessionRewound):
            kept = entry.event.seq
            counted = [earlier for earlier in counted if earlier.seq <= kept]
        counted.append(entry)
    return counted


Handled = TypeVar("Handled", bound=AnyEvent)


class EventSource(Protocol):
    """What a fold follows: a journal, or what was read of one."""

    @property
    def recorded(self) -> Iterable[RecordedEvent]:
        """Every event so far."""
        ...

    def follow(self, follower: "Projection[Any]", /) -> None:
        """Hand over every event so far, and each to come."""
        ...


class ReplayedHistory:
    """Events that were read and do not grow: to fold a session that another process holds."""

    def __init__(self, recorded: Iterable[RecordedEvent]) -> None:
        self.recorded = tuple(recorded)

    def follow(self, follower: "Projection[Any]", /) -> None:
        for entry in self.recorded:
            follower(entry)


class Projection(Generic[Handled]):
    """State that follows a journal. A subclass says which events it heeds, as in `Fold[TurnEnded | Noted]`, and has `reset` (the
    empty state) and `apply` (one more of these).
    """

    _kinds: ClassVar[frozenset[type]]

    def __init_subclass__(cls) -> None:
        (heeded,) = get_args(cls.__orig_bases__[0])  # type: ignore[attr-defined]  # what Generic leaves behind
        cls._kinds = frozenset(get_args(heeded) or (heeded,))

    def __init__(self, journal: EventSource) -> None:
        self._journal = journal
        self.reset()
        journal.follow(self)

    @classmethod
    def handles(cls, kind: type) -> bool:
        """Whether an event of this kind changes anything."""
        return kind in cls._kinds or kind is SessionRewound

    def reset(self) -> None:
        """Take the state before the first event."""
        raise NotImplementedError

    def apply(self, event: Handled, entry: RecordedEvent) -> None:
        """Take in one event."""
        raise NotImplementedError

    def __call__(self, entry: RecordedEvent) -> None:
        kind = type(entry.event)
        if kind in self._kinds:
            self.apply(entry.event, entry)  # type: ignore[arg-type]  # its kind says it
        elif kind is SessionRewound:
            self.reset()
            for earlier in without_rewound(each for each in self._journal.recorded if each.seq <= entry.seq):
                if type(earlier.event) in self._kinds:
                    self.apply(earlier.event, earlier)  # type: ignore[arg-type]
