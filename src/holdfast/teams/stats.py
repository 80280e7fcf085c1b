"""Statistics computed from the journals: messages, tokens, cost and answer times of every pair."""

import math
import statistics
from collections.abc import Iterable, Sequence
from decimal import Decimal

import msgspec

from holdfast.core import Value, is_success
from holdfast.teams.history import PairHistory
from holdfast.teams.pairs import Pair

LIFETIMES = {"hour": 3600.0, "day": 86_400.0, "week": 604_800.0, "month": 2_592_000.0}
"""The classes of the lifetime distribution and their upper limits in seconds."""
LONGER = "longer"


class PairStats(Value):
    """One pair. Times count completed answers; None if there are none."""

    pair: str
    messages: int
    failed: int
    tokens: int
    cost_usd: Decimal | None
    """None if a price is unknown."""
    median_seconds: float | None
    slow_seconds: float | None
    """The 95th percentile of the answer times."""
    generations: int
    lifetime_seconds: float = 0.0
    """From the first message to the last."""
    first_ms: int
    last_ms: int
    summaries: int = 0
    """How often the conversation was summarised, because it was near its token limit."""


class TeamsStats(Value):
    """The totals, and each pair with the busiest first."""

    pairs: tuple[PairStats, ...]
    messages: int
    failed: int
    tokens: int
    cost_usd: Decimal | None
    messages_a_pair: float
    tokens_a_pair: float = 0.0
    median_lifetime_seconds: float | None = None
    lifetimes: dict[str, int] = msgspec.field(default_factory=dict)
    """How many pairs have a lifetime of at most an hour, a day, a week, 30 days, or longer."""
    damaged: tuple[str, ...] = ()
    """Pairs whose journal cannot be read; the totals leave them out."""


def teams_stats(histories: Iterable[tuple[Pair, PairHistory]], *, damaged: Sequence[str] = ()) -> TeamsStats:
    """Compute the statistics of these histories."""
    pairs = sorted(
        (_pair_stats(pair, history) for pair, history in histories if history.turns),
        key=lambda each: (-each.messages, each.pair),
    )
    messages = sum(each.messages for each in pairs)
    tokens = sum(each.tokens for each in pairs)
    return TeamsStats(
        pairs=tuple(pairs),
        messages=messages,
        failed=sum(each.failed for each in pairs),
        tokens=tokens,
        cost_usd=_total([each.cost_usd for each in pairs]),
        messages_a_pair=round(messages / len(pairs), 2) if pairs else 0.0,
        tokens_a_pair=round(tokens / len(pairs), 2) if pairs else 0.0,
        median_lifetime_seconds=_median([each.lifetime_seconds for each in pairs]),
        lifetimes=_distribution([each.lifetime_seconds for each in pairs]),
        damaged=tuple(damaged),
    )


def _pair_stats(pair: Pair, history: PairHistory) -> PairStats:
    turns = history.turns
    times = sorted(turn.ended.wall_seconds for turn in turns if turn.ended is not None)
    return PairStats(
        pair=str(pair),
        messages=len(turns),
        failed=sum(turn.ended is None or not is_success(turn.ended.outcome) for turn in turns),
        tokens=sum(turn.usage.input_tokens + turn.usage.output_tokens for turn in turns),
        cost_usd=_total([turn.usage.cost_usd for turn in turns]),
        median_seconds=_median(times),
        slow_seconds=_slow(times),
        generations=history.generation,
        summaries=history.summaries,
        lifetime_seconds=(turns[-1].at_ms - turns[0].at_ms) / 1000,
        first_ms=turns[0].at_ms,
        last_ms=turns[-1].at_ms,
    )


def _distribution(lifetimes: Sequence[float]) -> dict[str, int]:
    found = dict.fromkeys((*LIFETIMES, LONGER), 0)
    for seconds in lifetimes:
        found[next((name for name, limit in LIFETIMES.items() if seconds <= limit), LONGER)] += 1
    return found


def _median(times: Sequence[float]) -> float | None:
    return statistics.median(times) if times else None


def _slow(times: Sequence[float]) -> float | None:
    """The time that 95 % of sorted times do not exceed."""
    return times[math.ceil(0.95 * len(times)) - 1] if times else None


def _total(costs: Sequence[Decimal | None]) -> Decimal | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known, Decimal(0)) if len(known) == len(costs) else None
