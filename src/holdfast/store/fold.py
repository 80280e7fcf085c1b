"""The fold: from a journal's events to the one line that a list of sessions shows. Pure, and the same for every store."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import msgspec

from holdfast.core import EscalationId, SessionId, Usage, Value
from holdfast.core.events import (
    CodePosted,
    EscalationAnswered,
    EscalationExpired,
    EscalationOpened,
    HistoryCompacted,
    MessagePosted,
    ModelFailed,
    ModelReplied,
    Recorded,
    SessionClosed,
    SessionOpened,
    SessionPaused,
    SessionPinned,
    SessionReconfigured,
    SessionRenamed,
    SessionResumed,
    TurnEnded,
)
from holdfast.core.fold import effective
from holdfast.store.contract import SessionSummary

FIRST_WORDS = 200
_HOUSEKEEPING = (SessionRenamed, SessionPinned)
"""What a person does to a session rather than in it: no activity."""
_LASTING = (SessionOpened, *_HOUSEKEEPING)
"""Who a session is. A rewind does not undo it, not even that of a fork to a point before it began."""


class Waiting(Value):
    """An escalation nobody has answered."""

    escalation: EscalationId
    since_ms: int


class Tally(Value):
    """How far a fold has come: the summary, and what is needed to go on."""

    summary: SessionSummary
    open_turn: int | None = None
    waiting: tuple[Waiting, ...] = ()


def begin(session: SessionId) -> Tally:
    """The fold of no events."""
    return Tally(summary=SessionSummary(id=session))


def is_activity(recorded: Recorded) -> bool:
    """Whether an event moves its session to the top of the list."""
    return not isinstance(recorded.event, _HOUSEKEEPING)


def fold(session: SessionId, recorded: Sequence[Recorded]) -> Tally:
    """The whole of a journal, folded."""
    tally = begin(session)
    for record in _counted(recorded):
        tally = advance(tally, record)
    if recorded:
        tally = _with(tally, events=recorded[-1].seq, active_ms=_active_ms(recorded))
    return tally


def advance(tally: Tally, record: Recorded) -> Tally:
    """One event further. A rewind cannot be folded forward: fold the whole journal again."""
    line = tally.summary
    changes: dict[str, Any] = {"events": record.seq}
    if is_activity(record):
        changes["active_ms"] = record.at_ms
    open_turn, waiting = tally.open_turn, tally.waiting
    match record.event:
        case SessionOpened() as opened:
            changes |= {
                "created_ms": record.at_ms,
                "name": opened.name,
                "description": opened.description or line.description,
                "folder": opened.folder,
                "workspace": opened.workspace,
                "model": opened.model,
                "policy": opened.policy,
                "parent": opened.parent,
                "is_pinned": False,
                "lifecycle": "open",
            }
        case SessionRenamed(name=name):
            changes["name"] = name
        case SessionPinned(is_pinned=is_pinned):
            changes["is_pinned"] = is_pinned
        case SessionReconfigured() as new:
            changes |= {
                "policy": new.policy or line.policy,
                "model": new.model or line.model,
                "workspace": new.workspace or line.workspace,
            }
        case SessionPaused():
            changes["lifecycle"] = "paused"
        case SessionResumed():
            changes["lifecycle"] = "open"
        case SessionClosed(how=how):
            changes["lifecycle"] = how
            open_turn, waiting = None, ()
        case MessagePosted(turn=turn, text=text):
            open_turn = turn
            changes |= {"turns": line.turns + 1, "messages": line.messages + 1}
            if not line.first_words:
                changes["first_words"] = text[:FIRST_WORDS]
        case CodePosted(turn=turn, code=code):
            open_turn = turn
            changes["turns"] = line.turns + 1
            if not line.first_words:
                changes["first_words"] = code[:FIRST_WORDS]
        case ModelReplied(usage=usage):
            changes["messages"] = line.messages + 1
            changes |= _spent(line, usage)
        case ModelFailed(usage=usage) | HistoryCompacted(usage=usage):
            if usage != Usage():
                changes |= _spent(line, usage)
        case TurnEnded():
            open_turn, waiting = None, ()
        case EscalationOpened(escalation=escalation):
            waiting = (*waiting, Waiting(escalation=escalation.id, since_ms=record.at_ms))
        case EscalationAnswered(escalation=settled) | EscalationExpired(escalation=settled):
            waiting = tuple(one for one in waiting if one.escalation != settled)
        case _:
            pass
    changes["activity"] = "waiting" if waiting else "ready" if open_turn is None else "processing"
    changes["waiting_since_ms"] = waiting[0].since_ms if waiting else None
    return Tally(summary=msgspec.structs.replace(line, **changes), open_turn=open_turn, waiting=waiting)


def _counted(recorded: Sequence[Recorded]) -> list[Recorded]:
    counted = {record.seq for record in effective(recorded)}
    return [record for record in recorded if record.seq in counted or isinstance(record.event, _LASTING)]


def _with(tally: Tally, **changes: Any) -> Tally:
    return msgspec.structs.replace(tally, summary=msgspec.structs.replace(tally.summary, **changes))


def _active_ms(recorded: Sequence[Recorded]) -> int:
    return next((record.at_ms for record in reversed(recorded) if is_activity(record)), 0)


def _spent(line: SessionSummary, usage: Usage) -> dict[str, int | Decimal | None]:
    cost = None if line.cost_usd is None or usage.cost_usd is None else line.cost_usd + usage.cost_usd
    return {"tokens": line.tokens + usage.input_tokens + usage.output_tokens, "cost_usd": cost}
