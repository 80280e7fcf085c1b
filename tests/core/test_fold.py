"""Folds: state is the journal read in order, and what a rewind took back was never there."""

from itertools import count

from holdfast.core import PERSON, SessionId
from holdfast.core.events import Event, Noted, RecordedEvent, SessionRewound
from holdfast.core.projection import Projection, ReplayedHistory, without_rewound


class Notes(Projection[Noted]):
    """The notes that count, in order."""

    def reset(self) -> None:
        self.codes: list[str] = []

    def apply(self, event: Noted, entry: RecordedEvent) -> None:
        self.codes.append(event.code)


def journal(*events: Event) -> list[RecordedEvent]:
    return [
        RecordedEvent(session=SessionId("s"), seq=seq, at_ms=seq, event=event, hash=b"")
        for seq, event in zip(count(1), events, strict=False)
    ]


def note(code: str) -> Noted:
    return Noted(code=code, text="")


def back_to(seq: int) -> SessionRewound:
    return SessionRewound(seq=seq, turn=0, principal=PERSON)


def test_a_rewind_takes_back_what_came_after_its_event_and_keeps_that_event() -> None:
    recorded = journal(note("a"), note("b"), note("c"), back_to(2), note("d"))
    assert [entry.seq for entry in without_rewound(recorded)] == [1, 2, 4, 5]
    assert Notes(ReplayedHistory(recorded)).codes == ["a", "b", "d"]


def test_a_rewind_over_a_rewind_brings_nothing_back() -> None:
    recorded = journal(note("a"), note("b"), back_to(1), note("c"), back_to(3))
    assert [entry.seq for entry in without_rewound(recorded)] == [1, 3, 5]
    assert Notes(ReplayedHistory(recorded)).codes == ["a"]
