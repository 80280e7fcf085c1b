"""Usage: what sessions cost and how often they asked, by day, model, folder, team or session."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Literal, assert_never, get_args

from holdfast.core import SessionId, Value
from holdfast.store import COUNTS, SessionSummary, Store, UsageCounts, UsageTotal

UsageGroup = Literal["day", "model", "folder", "team", "session"]
USAGE_GROUPS: tuple[UsageGroup, ...] = get_args(UsageGroup)


class UsageRow(Value):
    """What one day, model, folder, team or session used. A cost of None means that a price is unknown."""

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


_COUNTS = tuple(name for name in COUNTS if name in UsageRow.__struct_fields__)


async def usage(
    store: Store, *, by: UsageGroup, since_ms: int = 0, session: SessionId | None = None
) -> tuple[UsageRow, ...]:
    """What all sessions, or one, used since the day of a time. Days are in order; other groups by cost, then tokens."""
    since_day = _day(since_ms)
    if session is None and by != "session":
        found = await store.usage(since_day=since_day)
    else:
        found = await store.session_usage(since_day=since_day, session=session)
    names = await _names(store, session) if by == "session" else {}
    counts: dict[str, UsageCounts] = {}
    for each in found:
        key = _key(each, by, names)
        counts[key] = counts.get(key, UsageCounts()).plus(each.counts)
    rows = [
        UsageRow(key=key, cost_usd=each.cost_usd, **{name: getattr(each, name) for name in _COUNTS})
        for key, each in counts.items()
    ]
    if by == "day":
        return tuple(sorted(rows, key=lambda row: row.key))
    return tuple(sorted(rows, key=lambda row: (-(row.cost_usd or 0), -row.input_tokens, row.key)))


def total_usage(rows: Iterable[UsageRow]) -> UsageRow:
    """All rows together."""
    whole = UsageRow(key="total")
    for row in rows:
        whole = whole.plus(row)
    return whole


async def _names(store: Store, session: SessionId | None) -> Mapping[SessionId, str]:
    listed: Iterable[SessionSummary] = (
        await store.sessions() if session is None else [await store.summary(session)]
    )
    return {each.id: each.name for each in listed if each.name}


def _day(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000).astimezone().date().isoformat()


def _key(each: UsageTotal, by: UsageGroup, names: Mapping[SessionId, str]) -> str:
    match by:
        case "day":
            return each.key.day
        case "model":
            return each.key.model or "no model"
        case "folder":
            return each.key.folder or "own folder"
        case "team":
            from holdfast.teams import Pair  # a chat loads this module and needs no teams

            pair = Pair.parse(each.key.pair)
            return "no team" if pair is None else pair.receiver
        case "session":
            assert each.session is not None
            return names.get(each.session, each.session)
        case _:
            assert_never(by)
