"""Projections: state is computed from the events in order, without those that a rewind undid."""

from itertools import count

from holdfast.core import PERSON, SessionId
from holdfast.core.events import Event, Noted, RecordedEvent, SessionRewound
from holdfast.core.projection import Projection, ReplayedHistory, without_rewound


class Notes(Projection[Noted]):
    """The notes that are in effect, in order."""

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


def test_a_rewind_undoes_the_events_after_its_target() -> None:
    recorded = journal(note("a"), note("b"), note("c"), back_to(2), note("d"))
    assert [entry.seq for entry in without_rewound(recorded)] == [1, 2, 4, 5]
    assert Notes(ReplayedHistory(recorded)).codes == ["a", "b", "d"]


def test_a_rewind_past_a_rewind_restores_nothing() -> None:
    recorded = journal(note("a"), note("b"), back_to(1), note("c"), back_to(3))
    assert [entry.seq for entry in without_rewound(recorded)] == [1, 3, 5]
    assert Notes(ReplayedHistory(recorded)).codes == ["a"]
