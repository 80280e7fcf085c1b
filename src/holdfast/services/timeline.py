"""The timeline of a session: its turns, calls, commands, waits and restore points, each with start and length."""

from collections.abc import Iterable
from typing import Literal

from holdfast.core import Value
from holdfast.core.events import (
    CallIntended,
    CallRefused,
    CallSettled,
    CodePosted,
    EscalationAnswered,
    EscalationExpired,
    EscalationOpened,
    MessagePosted,
    ModelAsked,
    ModelFailed,
    ModelReplied,
    RecordedEvent,
    RestorePointMade,
    SessionRewound,
    TurnEnded,
    TurnReopened,
)

TimelineKind = Literal["turn", "model", "call", "refused", "wait", "restore-point", "rewind"]


class TimelineEntry(Value):
    """One thing that happened. `length_ms` is None while it lasts, and 0 for a moment."""

    kind: TimelineKind
    turn: int
    start_ms: int
    length_ms: int | None = None
    what: str = ""
    result: str = ""


class Timeline(Value):
    """The entries in the order in which they started."""

    entries: tuple[TimelineEntry, ...] = ()

    @property
    def start_ms(self) -> int:
        """When the first entry started."""
        return min((entry.start_ms for entry in self.entries), default=0)

    @property
    def end_ms(self) -> int:
        """When the last entry ended."""
        return max((entry.start_ms + (entry.length_ms or 0) for entry in self.entries), default=0)


class _Builder:
    """Pairs the events that start something with those that end it."""

    def __init__(self) -> None:
        self._entries: list[TimelineEntry] = []
        self._open: dict[tuple[str, object], int] = {}
        self._turn = 0

    def timeline(self) -> Timeline:
        return Timeline(entries=tuple(self._entries))

    def add(self, entry: RecordedEvent) -> None:
        at = entry.at_ms
        match event := entry.event:
            case MessagePosted():
                self._turn = event.turn
                self._start("turn", event.turn, at, event.text)
            case CodePosted():
                self._turn = event.turn
                self._start("turn", event.turn, at, event.code)
            case TurnReopened():
                self._turn = event.turn
                self._start("turn", event.turn, at, "resumed with a raised limit")
            case TurnEnded():
                self._end("turn", event.turn, at, type(event.outcome).__name__.lower())
            case ModelAsked():
                self._start("model", event.step, at, event.model)
            case ModelReplied():
                self._end("model", event.step, at, event.finish)
            case ModelFailed():
                self._end("model", event.step, at, event.code)
            case CallIntended():
                self._start("call", event.call.id, at, event.call.operation)
            case CallSettled():
                self._end("call", event.call, at, event.status)
            case CallRefused():
                self._moment("refused", at, event.call.operation, event.decision.rule)
            case EscalationOpened():
                self._start("wait", event.escalation.id, at, event.escalation.call.operation)
            case EscalationAnswered():
                self._end("wait", event.escalation, at, event.response.verdict)
            case EscalationExpired():
                self._end("wait", event.escalation, at, "expired")
            case RestorePointMade():
                self._moment("restore-point", at, f"end of turn {event.turn}", "")
            case SessionRewound():
                self._moment("rewind", at, f"to the end of turn {event.turn}", "")
            case _:
                pass

    def _start(self, kind: TimelineKind, key: object, at: int, what: str) -> None:
        self._open[kind, key] = len(self._entries)
        self._entries.append(TimelineEntry(kind=kind, turn=self._turn, start_ms=at, what=what))

    def _end(self, kind: TimelineKind, key: object, at: int, result: str) -> None:
        place = self._open.pop((kind, key), None)
        if place is None:
            return  # it started before what was read, as in a fork
        started = self._entries[place]
        self._entries[place] = TimelineEntry(
            kind=started.kind,
            turn=started.turn,
            start_ms=started.start_ms,
            length_ms=max(0, at - started.start_ms),
            what=started.what,
            result=result,
        )

    def _moment(self, kind: TimelineKind, at: int, what: str, result: str) -> None:
        self._entries.append(
            TimelineEntry(kind=kind, turn=self._turn, start_ms=at, length_ms=0, what=what, result=result)
        )


def timeline_of(recorded: Iterable[RecordedEvent]) -> Timeline:
    """Build the timeline from a journal."""
    builder = _Builder()
    for entry in recorded:
        builder.add(entry)
    return builder.timeline()
