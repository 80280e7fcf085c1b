"""The status of a session, projected from the journal: lifecycle, name, turns and notes.

`net_changes` combines several changes per file: a file that was created and deleted again never existed.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from holdfast.core import Amount, Change, EscalationId, Nonconverged, Outcome, Total, Value
from holdfast.core.events import (
    BudgetRaised,
    CallSettled,
    CodePosted,
    EscalationAnswered,
    EscalationExpired,
    EscalationOpened,
    Event,
    HistoryCompacted,
    MessagePosted,
    ModelFailed,
    ModelReplied,
    Noted,
    RecordedEvent,
    RestorePointMade,
    RunStarted,
    SessionClosed,
    SessionOpened,
    SessionPaused,
    SessionReconfigured,
    SessionRenamed,
    SessionResumed,
    TurnEnded,
    TurnReopened,
)
from holdfast.core.projection import EventSource, Projection
from holdfast.gate import Spending, cost_of

Lifecycle = Literal["open", "paused", "completed", "aborted", "failed"]
Activity = Literal["initializing", "ready", "processing", "waiting", "closed"]
MAX_NOTES = 1000
"""The newest notes are kept in memory; all are in the journal."""


class TurnRecord(Value):
    """One turn of the history; `outcome` is None while it runs or waits."""

    number: int
    asked: str
    is_code: bool = False
    language: str = ""
    """Of the code; empty for a message."""
    began_ms: int
    ended_ms: int | None = None
    outcome: Outcome | None = None
    prompt_tokens: int = 0
    """What the model read, without side models."""
    completion_tokens: int = 0
    """What the model wrote, without side models."""
    spent: Amount = Amount()
    """Everything it cost (an unknown price is None), including side models and failed calls."""
    changes: tuple[Change, ...] = ()
    """The files that changed since the previous turn: by anyone if there are restore points, else by the turn's own
    calls."""


def workspace_of(recorded: Iterable[RecordedEvent]) -> str:
    """The folder of a session, empty for its own; after a rewind it stays where it was moved to."""
    workspace = ""
    for entry in recorded:
        match event := entry.event:
            case SessionOpened():
                workspace = event.workspace  # a fork has its parent's SessionOpened before its own
            case SessionReconfigured():
                workspace = event.workspace or workspace
            case Noted(code="imported"):
                workspace = ""
            case _:
                pass
    return workspace


_Handled = (
    Spending
    | SessionOpened
    | SessionRenamed
    | SessionReconfigured
    | SessionPaused
    | SessionResumed
    | SessionClosed
    | RunStarted
    | TurnReopened
    | RestorePointMade
    | BudgetRaised
    | EscalationOpened
    | EscalationAnswered
    | EscalationExpired
    | Noted
)


class Status(Projection[_Handled]):
    """Lifecycle, name, turns and notes of a session."""

    def __init__(self, journal: EventSource) -> None:
        # Not part of `reset`: a rewind undoes what was done, not the chosen policy and model.
        self.model = ""
        self.policy_digest = ""
        self.policy = ""
        """A name or the path of a file. Model and policy of an imported session are empty until they are chosen here."""
        self.sandbox = ""
        """Where code runs; in a journal that does not record it, the engine of the last run."""
        self._is_sandbox_recorded = False
        self.queue = ""
        """Which workers run it; those of one machine, if it works in a folder there."""
        self._last_choice_seq = 0
        super().__init__(journal)

    def reset(self) -> None:
        self.lifecycle: Lifecycle = "open"
        self.opened: SessionOpened | None = None
        self.name: str | None = None
        self._turns: list[TurnRecord] = []
        self._spent = Total()
        """Spent by the last turn; written to its record when it is read."""
        self.notes: deque[Noted] = deque(maxlen=MAX_NOTES)
        self._waiting: set[EscalationId] = set()
        self._is_budget_raised = False
        self._point_changes: tuple[Change, ...] = ()
        """Changes reported by the restore points of the last turn."""

    def __repr__(self) -> str:
        return f"Status(lifecycle={self.lifecycle!r}, name={self.name!r}, turns={len(self._turns)})"

    @property
    def turns(self) -> Sequence[TurnRecord]:
        """Every turn so far."""
        self._update_spent()
        return self._turns

    def apply(self, event: _Handled, entry: RecordedEvent) -> None:
        if entry.seq > self._last_choice_seq:
            self._last_choice_seq = entry.seq
            self._apply_choice(event)
        match event:
            case ModelReplied():
                pass  # the most frequent event; its cost is added below
            case SessionOpened():
                self.opened, self.name = event, event.name
            case SessionRenamed():
                self.name = event.name
            case SessionPaused():
                self.lifecycle = "paused"
            case SessionResumed():
                self.lifecycle = "open"
            case SessionClosed():
                self.lifecycle = event.how
            case MessagePosted():
                self._begin(TurnRecord(number=event.turn, asked=event.typed_text, began_ms=entry.at_ms))
            case CodePosted():
                self._begin(
                    TurnRecord(
                        number=event.turn,
                        asked=event.code,
                        is_code=True,
                        language=event.language,
                        began_ms=entry.at_ms,
                    )
                )
            case TurnEnded() if self._turns:
                self._is_budget_raised = False
                self._update_last_turn(ended_ms=entry.at_ms, outcome=event.outcome)
            case CallSettled() if self._turns and event.changes:
                self._update_last_turn(changes=net_changes((*self._turns[-1].changes, *event.changes)))
            case RestorePointMade() if self._turns and event.turn == self._turns[-1].number:
                # A second restore point of a turn reports what changed since the first.
                self._point_changes = (
                    net_changes((*self._point_changes, *event.changes))
                    if self._point_changes
                    else event.changes
                )
                self._update_last_turn(changes=self._point_changes)
            case TurnReopened():
                self._update_last_turn(ended_ms=None, outcome=None)
            case BudgetRaised():
                self._is_budget_raised = True
            case EscalationOpened():
                self._waiting.add(event.escalation.id)
            case EscalationAnswered() | EscalationExpired():
                self._waiting.discard(event.escalation)
            case Noted():
                self.notes.append(event)
            case _:
                pass
        if isinstance(event, ModelReplied | ModelFailed | HistoryCompacted) and self._turns:
            last = self._turns[-1]
            self._update_last_turn(
                prompt_tokens=last.prompt_tokens + event.usage.input_tokens,
                completion_tokens=last.completion_tokens + event.usage.output_tokens,
            )
        if (amount := cost_of(event)) is not None:
            self._spent.add(amount)

    def _apply_choice(self, event: Event) -> None:
        match event:
            case SessionOpened():
                self.model, self.policy = event.model, event.policy
                self.policy_digest, self.queue = event.policy_digest, event.queue
                self._choose_sandbox(event.sandbox)
            case SessionReconfigured():
                self.model, self.policy = event.model or self.model, event.policy or self.policy
                self.policy_digest = event.policy_digest or self.policy_digest
                self._choose_sandbox(event.sandbox)
            case RunStarted() if not self._is_sandbox_recorded:
                self.sandbox = event.engine
            case Noted(code="imported"):
                # Those of another machine.
                self.model = self.policy = self.policy_digest = self.sandbox = self.queue = ""
                self._is_sandbox_recorded = False
            case _:
                pass

    def _choose_sandbox(self, sandbox: str) -> None:
        if sandbox:
            self.sandbox, self._is_sandbox_recorded = sandbox, True

    def _begin(self, turn: TurnRecord) -> None:
        self._update_spent()
        self._turns.append(turn)
        self._spent = Total()
        self._point_changes = ()

    def _update_spent(self) -> None:
        if self._turns:
            self._update_last_turn(spent=self._spent.amount())

    def _update_last_turn(self, **fields: object) -> None:
        self._turns[-1] = msgspec.structs.replace(self._turns[-1], **fields)

    @property
    def has_open_turn(self) -> bool:
        """Whether a turn was started and has no outcome."""
        return bool(self._turns) and self._turns[-1].outcome is None

    @property
    def can_reopen_turn(self) -> bool:
        """Whether the last turn ran out of a budget that has been raised since."""
        return self._is_budget_raised and bool(self._turns) and _is_out_of_budget(self._turns[-1].outcome)

    @property
    def activity(self) -> Literal["ready", "processing", "waiting"]:
        """What the session is doing."""
        if not self.has_open_turn:
            return "ready"
        return "waiting" if self._waiting else "processing"


def _is_out_of_budget(outcome: Outcome | None) -> bool:
    return isinstance(outcome, Nonconverged) and outcome.reason == "budget"


def net_changes(changes: Iterable[Change]) -> tuple[Change, ...]:
    """One change for each file that differs at the end, sorted by path; staged changes are left out."""
    merged: dict[str, Change] = {}
    for change in changes:
        if change.is_staged:
            continue
        first = merged.get(change.path)
        merged[change.path] = _merge(first.before if first else change.before, change)
    return tuple(change for _, change in sorted(merged.items()) if change.before != change.after)


def _merge(before: str | None, last: Change) -> Change:
    kind: Literal["created", "modified", "deleted"] = (
        "created" if before is None else "deleted" if last.after is None else "modified"
    )
    return Change(path=last.path, kind=kind, before=before, after=last.after, mode=last.mode)
