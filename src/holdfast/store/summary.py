"""Session summaries: the projection of a journal to one row of the session list. Pure, and the same for every store."""

from collections.abc import Sequence
from typing import Any

import msgspec

from holdfast.core import EscalationId, SessionId, Usage, Value
from holdfast.core.events import (
    CallIntended,
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
    SessionClosed,
    SessionOpened,
    SessionPaused,
    SessionPinned,
    SessionReconfigured,
    SessionRenamed,
    SessionResumed,
    SessionRewound,
    SessionTitled,
    TurnEnded,
    TurnReopened,
)
from holdfast.core.projection import without_rewound
from holdfast.store.contract import SessionSummary

MAX_FIRST_WORDS_CHARS = 200
_NOT_ACTIVITY = (SessionRenamed, SessionPinned, SessionTitled)
"""Changes to a session from outside, which do not count as activity."""
_CALLS = frozenset({CallIntended, CallSettled})
"""Events that change only the time of the last activity."""
_KEPT_ON_REWIND = (SessionOpened, SessionReconfigured, *_NOT_ACTIVITY)
"""The identity of a session and its policy, model and workspace. A rewind does not undo them, not even the rewind of a fork to a
point before the fork."""


class OpenEscalation(Value):
    """An escalation that is not answered yet."""

    escalation: EscalationId
    since_ms: int
    seq: int = 0
    """The position of the event that opened it; 0 in rows of older versions, which do not say."""


class SummaryState(Value):
    """The summary, and the state needed to advance it."""

    summary: SessionSummary
    open_turn: int | None = None
    waiting: tuple[OpenEscalation, ...] = ()


def empty_summary(session: SessionId) -> SummaryState:
    """The state before the first event."""
    return SummaryState(summary=SessionSummary(id=session))


def is_activity(recorded: RecordedEvent) -> bool:
    """Whether an event counts as activity and moves its session to the top of the list."""
    return not isinstance(recorded.event, _NOT_ACTIVITY)


def summarize(session: SessionId, recorded: Sequence[RecordedEvent]) -> SummaryState:
    """Summarize a whole journal."""
    state = advance_summary(empty_summary(session), _effective_events(recorded))
    return _with_activity(state, recorded) if recorded else state


def advance_summary(state: SummaryState, recorded: Sequence[RecordedEvent]) -> SummaryState:
    """Advance a summary by some events. After a rewind, summarize the whole journal instead."""
    if not recorded:
        return state
    if relevant := [record for record in recorded if type(record.event) not in _CALLS]:
        builder = _SummaryBuilder(state)
        for record in relevant:
            builder.add(record)
        state = builder.state()
    return _with_activity(state, recorded)


def _with_activity(state: SummaryState, recorded: Sequence[RecordedEvent]) -> SummaryState:
    """Set the number of events and the time of the last activity."""
    last = next((record.at_ms for record in reversed(recorded) if is_activity(record)), None)
    active_ms = state.summary.active_ms if last is None else last
    line = msgspec.structs.replace(state.summary, events=recorded[-1].seq, active_ms=active_ms)
    return SummaryState(summary=line, open_turn=state.open_turn, waiting=state.waiting)


class _Changes(dict[str, Any]):
    """The changed fields of a summary; a missing one reads as its old value."""

    # Any: `_SummaryBuilder.state` restores the types of the fields.
    def __init__(self, before: SessionSummary) -> None:
        super().__init__()
        self._before = before

    def __missing__(self, field: str) -> Any:
        return getattr(self._before, field)


class _SummaryBuilder:
    """Builds a summary in place, because a new value for each event would dominate the cost."""

    def __init__(self, state: SummaryState) -> None:
        self._before = state.summary
        self._line = _Changes(state.summary)
        self._open_turn = state.open_turn
        self._waiting = state.waiting

    def state(self) -> SummaryState:
        """The resulting state."""
        line = self._line
        line["activity"] = (
            "waiting" if self._waiting else "ready" if self._open_turn is None else "processing"
        )
        line["waiting_since_ms"] = self._waiting[0].since_ms if self._waiting else None
        summary = msgspec.structs.replace(self._before, **line)
        return SummaryState(summary=summary, open_turn=self._open_turn, waiting=self._waiting)

    def add(self, record: RecordedEvent) -> None:
        """Process one event."""
        line = self._line
        match record.event:
            case MessagePosted(turn=turn, typed_text=text):
                self._begin_turn(turn, text)
                line["messages"] += 1
            case ModelReplied(usage=usage):
                line["messages"] += 1
                self._spend(usage)
            case TurnEnded():
                self._open_turn = None
            case TurnReopened(turn=turn):
                self._open_turn = turn
            case CodePosted(turn=turn, code=code):
                self._begin_turn(turn, code)
            case ModelFailed(usage=usage) | HistoryCompacted(usage=usage) if usage != Usage():
                self._spend(usage)
            case SessionTitled(title=title, usage=usage):
                line["title"] = title
                self._spend(usage)
            case EscalationOpened(escalation=escalation):
                waiting = OpenEscalation(escalation=escalation.id, since_ms=record.at_ms, seq=record.seq)
                self._waiting = (*self._waiting, waiting)
            case EscalationAnswered(escalation=settled) | EscalationExpired(escalation=settled):
                self._waiting = tuple(one for one in self._waiting if one.escalation != settled)
            case SessionOpened() as opened:
                self._open(opened, record.at_ms)
            case SessionRenamed(name=name):
                line["name"] = name
            case SessionPinned(is_pinned=is_pinned):
                line["is_pinned"] = is_pinned
            case SessionReconfigured() as new:
                for field in ("policy", "model", "workspace"):
                    line[field] = getattr(new, field) or line[field]
            case Noted(code="imported"):
                # What the file names is of another machine.
                line |= {"policy": "", "model": "", "workspace": "", "folder": "", "queue": ""}
            case SessionPaused():
                line["lifecycle"] = "paused"
            case SessionResumed():
                line["lifecycle"] = "open"
            case SessionClosed(how=how):
                line["lifecycle"] = how
                self._open_turn, self._waiting = None, ()
            case _:
                pass

    def _open(self, opened: SessionOpened, at_ms: int) -> None:
        for field in ("name", "folder", "workspace", "model", "policy", "queue", "parent"):
            self._line[field] = getattr(opened, field)
        self._line["description"] = opened.description or self._line["description"]
        self._line |= {"created_ms": at_ms, "is_pinned": False, "lifecycle": "open"}

    def _begin_turn(self, turn: int, words: str) -> None:
        self._open_turn = turn
        self._line["turns"] += 1
        self._line["first_words"] = self._line["first_words"] or words[:MAX_FIRST_WORDS_CHARS]

    def _spend(self, usage: Usage) -> None:
        before = self._line["cost_usd"]
        is_known = before is not None and usage.cost_usd is not None
        self._line["cost_usd"] = before + usage.cost_usd if is_known else None
        self._line["tokens"] += usage.input_tokens + usage.output_tokens


def _effective_events(recorded: Sequence[RecordedEvent]) -> Sequence[RecordedEvent]:
    if SessionRewound not in {type(record.event) for record in recorded}:
        return recorded
    counted = {record.seq for record in without_rewound(recorded)}
    return [record for record in recorded if record.seq in counted or _is_kept_on_rewind(record.event)]


def _is_kept_on_rewind(event: Event) -> bool:
    return isinstance(event, _KEPT_ON_REWIND) or (isinstance(event, Noted) and event.code == "imported")
