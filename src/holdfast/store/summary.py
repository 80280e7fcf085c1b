"""The fold: from a journal's events to the one line that a list of sessions shows. Pure, and the same for every store."""

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
    HistoryCompacted,
    MessagePosted,
    ModelFailed,
    ModelReplied,
    RecordedEvent,
    SessionClosed,
    SessionOpened,
    SessionPaused,
    SessionPinned,
    SessionReconfigured,
    SessionRenamed,
    SessionResumed,
    SessionRewound,
    TurnEnded,
    TurnReopened,
)
from holdfast.core.projection import without_rewound
from holdfast.store.contract import SessionSummary

FIRST_WORDS = 200
_HOUSEKEEPING = (SessionRenamed, SessionPinned)
"""What a person does to a session rather than in it: no activity."""
_CALLS = frozenset({CallIntended, CallSettled})
"""What changes nothing that the line shows, but when it was."""
_LASTING = (SessionOpened, *_HOUSEKEEPING)
"""Who a session is. A rewind does not undo it, not even that of a fork to a point before it began."""


class Waiting(Value):
    """An escalation nobody has answered."""

    escalation: EscalationId
    since_ms: int


class SummaryState(Value):
    """How far a fold has come: the summary, and what is needed to go on."""

    summary: SessionSummary
    open_turn: int | None = None
    waiting: tuple[Waiting, ...] = ()


def empty_summary(session: SessionId) -> SummaryState:
    """The fold of no events."""
    return SummaryState(summary=SessionSummary(id=session))


def is_activity(recorded: RecordedEvent) -> bool:
    """Whether an event moves its session to the top of the list."""
    return not isinstance(recorded.event, _HOUSEKEEPING)


def summarize(session: SessionId, recorded: Sequence[RecordedEvent]) -> SummaryState:
    """The whole of a journal, folded."""
    tally = advance_summary(empty_summary(session), _counted(recorded))
    return _dated(tally, recorded) if recorded else tally


def advance_summary(tally: SummaryState, recorded: Sequence[RecordedEvent]) -> SummaryState:
    """Some events further. A rewind cannot be folded forward: fold the whole journal again."""
    if not recorded:
        return tally
    if telling := [record for record in recorded if type(record.event) not in _CALLS]:
        folding = _Folding(tally)
        for record in telling:
            folding.take(record)
        tally = folding.tally()
    return _dated(tally, recorded)


def _dated(tally: SummaryState, recorded: Sequence[RecordedEvent]) -> SummaryState:
    """With how many events there are, and when something was last done."""
    last = next((record.at_ms for record in reversed(recorded) if is_activity(record)), None)
    active_ms = tally.summary.active_ms if last is None else last
    line = msgspec.structs.replace(tally.summary, events=recorded[-1].seq, active_ms=active_ms)
    return SummaryState(summary=line, open_turn=tally.open_turn, waiting=tally.waiting)


class _Changes(dict[str, Any]):
    """The fields of a summary that become others, by name; those that do not are as they were."""

    # Any: `_Folding.tally` gives the fields their types back.
    def __init__(self, before: SessionSummary) -> None:
        super().__init__()
        self._before = before

    def __missing__(self, field: str) -> Any:
        return getattr(self._before, field)


class _Folding:
    """A fold under way. Changed in place, since a value a step would be most of the cost of a fold."""

    def __init__(self, tally: SummaryState) -> None:
        self._before = tally.summary
        self._line = _Changes(tally.summary)
        self._open_turn = tally.open_turn
        self._waiting = tally.waiting

    def tally(self) -> SummaryState:
        """What came of it."""
        line = self._line
        line["activity"] = (
            "waiting" if self._waiting else "ready" if self._open_turn is None else "processing"
        )
        line["waiting_since_ms"] = self._waiting[0].since_ms if self._waiting else None
        summary = msgspec.structs.replace(self._before, **line)
        return SummaryState(summary=summary, open_turn=self._open_turn, waiting=self._waiting)

    def take(self, record: RecordedEvent) -> None:
        """One event further."""
        line = self._line
        match record.event:
            case MessagePosted(turn=turn, text=text):
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
            case EscalationOpened(escalation=escalation):
                waiting = Waiting(escalation=escalation.id, since_ms=record.at_ms)
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
        for field in ("name", "folder", "workspace", "model", "policy", "parent"):
            self._line[field] = getattr(opened, field)
        self._line["description"] = opened.description or self._line["description"]
        self._line |= {"created_ms": at_ms, "is_pinned": False, "lifecycle": "open"}

    def _begin_turn(self, turn: int, words: str) -> None:
        self._open_turn = turn
        self._line["turns"] += 1
        self._line["first_words"] = self._line["first_words"] or words[:FIRST_WORDS]

    def _spend(self, usage: Usage) -> None:
        before = self._line["cost_usd"]
        is_known = before is not None and usage.cost_usd is not None
        self._line["cost_usd"] = before + usage.cost_usd if is_known else None
        self._line["tokens"] += usage.input_tokens + usage.output_tokens


def _counted(recorded: Sequence[RecordedEvent]) -> Sequence[RecordedEvent]:
    if SessionRewound not in {type(record.event) for record in recorded}:
        return recorded
    counted = {record.seq for record in without_rewound(recorded)}
    return [record for record in recorded if record.seq in counted or isinstance(record.event, _LASTING)]
