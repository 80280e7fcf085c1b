"""Where a session stands: three fields folded from the journal, not one word."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from holdfast.core import EscalationId, Nonconverged, Outcome, Value
from holdfast.core.events import (
    AnyEvent,
    BudgetRaised,
    CodePosted,
    EscalationAnswered,
    EscalationExpired,
    EscalationOpened,
    MessagePosted,
    Noted,
    Recorded,
    SessionClosed,
    SessionOpened,
    SessionPaused,
    SessionReconfigured,
    SessionRenamed,
    SessionResumed,
    TurnEnded,
    TurnReopened,
)
from holdfast.core.fold import Fold

Lifecycle = Literal["open", "paused", "completed", "aborted", "failed"]
MAX_NOTES = 1000


class TurnRecord(Value):
    """One turn of the history: what was asked and how it ended; `outcome` is None while it runs or waits."""

    number: int
    asked: str
    is_code: bool = False
    began_ms: int
    ended_ms: int | None = None
    outcome: Outcome | None = None


def workspace_of(recorded: Iterable[Recorded]) -> str:
    """The folder a session works in, empty for its own; also after a rewind it stays where it was moved to."""
    named = ""
    for entry in recorded:
        match event := entry.event:
            case SessionOpened():
                named = event.workspace  # a fork has its parent's opening before its own
            case SessionReconfigured():
                named = event.workspace or named
            case _:
                pass
    return named


class Status(Fold):
    """Lifecycle, name, turns and notes of a session."""

    def reset(self) -> None:
        self.lifecycle: Lifecycle = "open"
        self.opened: SessionOpened | None = None
        self.name: str | None = None
        self.model = ""
        self.policy = ""
        self.turns: list[TurnRecord] = []
        self.notes: list[Noted] = []
        self._waiting: set[EscalationId] = set()
        self._is_raised = False

    def apply(self, event: AnyEvent, entry: Recorded) -> None:
        match event:
            case SessionOpened():
                self.opened, self.name = event, event.name
                self.model, self.policy = event.model, event.policy
            case SessionReconfigured():
                self.model, self.policy = event.model or self.model, event.policy or self.policy
            case SessionRenamed():
                self.name = event.name
            case SessionPaused():
                self.lifecycle = "paused"
            case SessionResumed():
                self.lifecycle = "open"
            case SessionClosed():
                self.lifecycle = event.how
            case MessagePosted():
                self.turns.append(TurnRecord(number=event.turn, asked=event.text, began_ms=entry.at_ms))
            case CodePosted():
                self.turns.append(
                    TurnRecord(number=event.turn, asked=event.code, is_code=True, began_ms=entry.at_ms)
                )
            case TurnEnded() if self.turns:
                self._is_raised = False
                last = self.turns[-1]
                self.turns[-1] = TurnRecord(
                    number=last.number,
                    asked=last.asked,
                    is_code=last.is_code,
                    began_ms=last.began_ms,
                    ended_ms=entry.at_ms,
                    outcome=event.outcome,
                )
            case TurnReopened():
                self.turns[-1] = msgspec.structs.replace(self.turns[-1], ended_ms=None, outcome=None)
            case BudgetRaised():
                self._is_raised = True
            case EscalationOpened():
                self._waiting.add(event.escalation.id)
            case EscalationAnswered() | EscalationExpired():
                self._waiting.discard(event.escalation)
            case Noted():
                self.notes = [*self.notes, event][-MAX_NOTES:]
            case _:
                pass

    @property
    def has_open_turn(self) -> bool:
        """Whether a turn was begun and has no outcome."""
        return bool(self.turns) and self.turns[-1].outcome is None

    @property
    def can_go_on(self) -> bool:
        """Whether the last turn was stopped by a budget that has been raised since."""
        last = self.turns[-1].outcome if self.turns else None
        return self._is_raised and isinstance(last, Nonconverged) and last.reason == "budget"

    @property
    def activity(self) -> Literal["ready", "processing", "waiting"]:
        """What the session does now."""
        if not self.has_open_turn:
            return "ready"
        return "waiting" if self._waiting else "processing"
