"""The teams as they stand, read from their journals without a broker: for a page that watches them, whoever runs them."""

from collections.abc import Sequence

from holdfast.core import Outcome, SessionId, Value, is_success
from holdfast.core.errors import HoldfastError, JournalDamaged
from holdfast.core.projection import ReplayedHistory
from holdfast.store import SessionSummary, Store
from holdfast.teams.history import PairHistory
from holdfast.teams.pair_log import PairLog, QueuedMessages
from holdfast.teams.pairs import Pair
from holdfast.teams.stats import TeamsStats, teams_stats

MAX_TEXT = 200


class PairState(Value, omit_defaults=False):
    """One pair as it stands: what is being answered, what is queued, and how the last answer ended."""

    pair: str
    session: SessionId
    in_flight: str
    """The start of the message that is being answered; empty if none is."""
    queued: int
    """Messages that wait for their turn."""
    is_held: bool
    """Whether a process has its session open."""
    is_archived: bool
    last_outcome: str
    """The kind of the last outcome; empty without one."""
    last_failed: bool
    last_ms: int


class TeamsOverview(Value, omit_defaults=False):
    """Every pair with its state, and the statistics of all of them."""

    pairs: tuple[PairState, ...]
    stats: TeamsStats


async def teams_overview(store: Store, folder: str) -> TeamsOverview:
    """The state and the statistics of the pairs that keep their files in a folder."""
    histories: list[tuple[Pair, PairHistory]] = []
    states: list[PairState] = []
    damaged: list[str] = []
    for line in await store.sessions(folder=folder):
        pair = Pair.parse(line.description)
        if pair is None:
            continue
        try:
            history = PairHistory(ReplayedHistory(await store.read(line.id)))
        except JournalDamaged:
            damaged.append(str(pair))
            continue
        histories.append((pair, history))
        states.append(await _state(pair, line, history, store, folder))
    return TeamsOverview(pairs=tuple(states), stats=teams_stats(histories, damaged=damaged))


async def _state(
    pair: Pair, line: SessionSummary, history: PairHistory, store: Store, folder: str
) -> PairState:
    turns = history.turns
    current = turns[-1] if turns and turns[-1].ended is None else None
    ended: Sequence[Outcome] = [turn.ended.outcome for turn in turns if turn.ended is not None]
    holder = await store.holder(line.id)
    try:
        queued = len(await QueuedMessages(PairLog(pair, store=store, folder=folder)).pending())
    except HoldfastError:
        queued = 0  # the pair has no log yet, or one that cannot be read
    return PairState(
        pair=str(pair),
        session=line.id,
        in_flight=current.text[:MAX_TEXT] if current is not None else "",
        queued=queued,
        is_held=holder is not None,
        is_archived=history.is_archived,
        last_outcome=type(ended[-1]).__name__.lower() if ended else "",
        last_failed=bool(ended) and not is_success(ended[-1]),
        last_ms=line.active_ms,
    )
