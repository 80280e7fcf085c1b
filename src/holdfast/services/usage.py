"""Usage: what sessions cost and how often they asked, by day, model, folder or session."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Literal, assert_never, get_args

import msgspec

from holdfast.core import Usage, Value
from holdfast.core.events import (
    CallIntended,
    CallRefused,
    CommandStarted,
    EscalationAnswered,
    EscalationOpened,
    HistoryCompacted,
    ModelAsked,
    ModelFailed,
    ModelReplied,
    RecordedEvent,
    SessionTitled,
)
from holdfast.store import SessionSummary, Store

UsageGroup = Literal["day", "model", "folder", "session"]
USAGE_GROUPS: tuple[UsageGroup, ...] = get_args(UsageGroup)


class UsageRow(Value):
    """What one day, model, folder or session used. A cost of None means that a price is unknown."""

    key: str
    cost_usd: Decimal | None = Decimal(0)
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    requests: int = 0
    """Requests to models."""
    calls: int = 0
    """Calls that were made."""
    refused: int = 0
    commands: int = 0
    prompts: int = 0
    """Questions to a person."""
    answered: int = 0
    answer_ms: int = 0
    """How long people took to answer, together."""

    def plus(self, other: "UsageRow") -> "UsageRow":
        """Both together, under this row's key."""
        unknown = self.cost_usd is None or other.cost_usd is None
        return UsageRow(
            key=self.key,
            cost_usd=None if unknown else (self.cost_usd or Decimal(0)) + (other.cost_usd or Decimal(0)),
            **{name: getattr(self, name) + getattr(other, name) for name in _COUNTS},
        )


_COUNTS = tuple(field for field in UsageRow.__struct_fields__ if field not in ("key", "cost_usd"))


async def usage(
    store: Store, sessions: Iterable[SessionSummary], *, by: UsageGroup, since_ms: int = 0
) -> tuple[UsageRow, ...]:
    """Add up the events of these sessions since a time. Days are in order; other groups by cost, then tokens."""
    rows: dict[str, UsageRow] = {}
    for session in sessions:
        recorded = await store.read(session.id)
        own = [entry for entry in recorded if entry.at_ms >= since_ms and _is_own(entry, session)]
        for key, row in _rows_of(own, session, by).items():
            rows[key] = rows[key].plus(row) if key in rows else row
    if by == "day":
        return tuple(rows[key] for key in sorted(rows))
    return tuple(sorted(rows.values(), key=lambda row: (-(row.cost_usd or 0), -row.input_tokens, row.key)))


def total_usage(rows: Iterable[UsageRow]) -> UsageRow:
    """All rows together."""
    whole = UsageRow(key="total")
    for row in rows:
        whole = whole.plus(row)
    return whole


def _is_own(entry: RecordedEvent, session: SessionSummary) -> bool:
    """Whether a session made this event itself. A fork has the events of its parent too, which count once."""
    return session.parent is None or entry.seq > session.parent.seq


def _rows_of(
    recorded: Iterable[RecordedEvent], session: SessionSummary, by: UsageGroup
) -> Mapping[str, UsageRow]:
    rows: dict[str, UsageRow] = {}
    asked: dict[str, int] = {}
    model = session.model
    for entry in recorded:
        if isinstance(entry.event, ModelAsked):
            model = entry.event.model
        row = _row(entry, asked)
        if row is None:
            continue
        key = _key(entry, session, by, model)
        row = msgspec.structs.replace(row, key=key)
        rows[key] = rows[key].plus(row) if key in rows else row
    return rows


def _row(entry: RecordedEvent, asked: dict[str, int]) -> UsageRow | None:
    match event := entry.event:
        case ModelReplied() | ModelFailed():
            return _of_tokens(event.usage)
        case HistoryCompacted() | SessionTitled():
            return _of_tokens(event.usage)
        case CallIntended():
            return UsageRow(key="", calls=1)
        case CallRefused():
            return UsageRow(key="", refused=1)
        case CommandStarted():
            return UsageRow(key="", commands=1)
        case EscalationOpened():
            asked[event.escalation.id] = entry.at_ms
            return UsageRow(key="", prompts=1)
        case EscalationAnswered():
            waited = entry.at_ms - asked.get(event.escalation, entry.at_ms)
            return UsageRow(key="", answered=1, answer_ms=max(0, waited))
        case _:
            return None


def _of_tokens(used: Usage) -> UsageRow:
    return UsageRow(
        key="",
        cost_usd=used.cost_usd,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cached_tokens=used.cached_tokens,
        requests=1,
    )


def _key(entry: RecordedEvent, session: SessionSummary, by: UsageGroup, model: str) -> str:
    match by:
        case "day":
            return datetime.fromtimestamp(entry.at_ms / 1000).astimezone().date().isoformat()
        case "model":
            return model or "no model"
        case "folder":
            return session.workspace or "own folder"
        case "session":
            return session.name or session.id
        case _:
            assert_never(by)
