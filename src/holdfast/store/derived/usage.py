"""Usage: what sessions spent and asked, by day, model, folder and pair of teams. A projection of the events of all sessions.

Pure, and the same for every store. An append does not touch what a store keeps of it: the events that are new since the last look
are folded when somebody asks, so the answer costs the same in a store of any size.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal

import msgspec

from holdfast.core import SessionId, Usage, Value
from holdfast.core.events import (
    CallIntended,
    CallRefused,
    CommandStarted,
    EscalationAnswered,
    EscalationExpired,
    EscalationOpened,
    Event,
    HistoryCompacted,
    ModelAsked,
    ModelFailed,
    ModelReplied,
    Noted,
    SessionOpened,
    SessionReconfigured,
    SessionTitled,
)

_NANO = Decimal(10) ** 9
_TEAM_SESSION = "team-"
"""The ids of the sessions in which teams talk; their description is the pair."""


class UsageCounts(Value):
    """What was used, as numbers that add up."""

    nano_usd: int = 0
    """The cost in billionths of a dollar, of the requests whose price is known."""
    unpriced: int = 0
    """Requests whose price is unknown."""
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

    def plus(self, other: "UsageCounts") -> "UsageCounts":
        """Both together."""
        return UsageCounts(**{name: getattr(self, name) + getattr(other, name) for name in COUNTS})

    @property
    def cost_usd(self) -> Decimal | None:
        """The cost in dollars; None if a price is unknown."""
        return None if self.unpriced else Decimal(self.nano_usd) / _NANO


COUNTS: tuple[str, ...] = UsageCounts.__struct_fields__


class UsageKey(Value):
    """What a row of usage stands for."""

    day: str
    """The date on the clock of the machine that folded it."""
    model: str
    folder: str
    """The workspace; empty for a folder of the session's own."""
    pair: str
    """The teams that talk in the session, such as `web -> backend`; empty if none do."""


class UsageTotal(Value):
    """What all sessions, or one, used on a day with a model in a folder."""

    key: UsageKey
    counts: UsageCounts
    session: SessionId | None = None
    """The session, if it is the usage of one."""


def usage_total(row: Iterable[object]) -> UsageTotal:
    """A row of a store: session, day, model, folder, pair and the counts."""
    session, day, model, folder, pair, *counts = row
    return UsageTotal(
        session=None if session is None else SessionId(str(session)),
        key=UsageKey(day=str(day), model=str(model), folder=str(folder), pair=str(pair)),
        counts=msgspec.convert(dict(zip(COUNTS, counts, strict=True)), UsageCounts),
    )


class SessionPlace(Value):
    """What the next event of a session counts for."""

    model: str = ""
    folder: str = ""
    pair: str = ""


class UsageFold:
    """Folds events in their order. It continues from the places and open questions that an earlier fold left."""

    def __init__(
        self, places: Mapping[SessionId, SessionPlace], asked: Mapping[tuple[SessionId, str], int]
    ) -> None:
        self.places = dict(places)
        self.asked = dict(asked)
        """When each question that is still open was asked."""
        self.settled: set[tuple[SessionId, str]] = set()
        self._found: dict[tuple[SessionId, UsageKey], UsageCounts] = defaultdict(UsageCounts)

    def add(self, session: SessionId, at_ms: int, event: Event) -> None:
        """Fold one event."""
        place = self.places.get(session, SessionPlace())
        match event:
            case SessionOpened():
                pair = event.description.partition(" #")[0] if session.startswith(_TEAM_SESSION) else ""
                place = SessionPlace(model=event.model, folder=event.workspace, pair=pair)
            case SessionReconfigured() | ModelAsked():
                folder = event.workspace if isinstance(event, SessionReconfigured) else ""
                place = SessionPlace(
                    model=event.model or place.model, folder=folder or place.folder, pair=place.pair
                )
            case Noted(code="imported"):  # what the file names is of another machine
                place = SessionPlace(pair=place.pair)
        self.places[session] = place
        counts = self._counts(session, at_ms, event)
        if counts is not None:
            day = datetime.fromtimestamp(at_ms / 1000).astimezone().date().isoformat()
            key = UsageKey(day=day, model=place.model, folder=place.folder, pair=place.pair)
            self._found[session, key] = self._found[session, key].plus(counts)

    def totals(self) -> Iterable[UsageTotal]:
        """What was found, by session."""
        return (
            UsageTotal(session=session, key=key, counts=counts)
            for (session, key), counts in self._found.items()
        )

    def _counts(self, session: SessionId, at_ms: int, event: Event) -> UsageCounts | None:
        match event:
            case ModelReplied() | ModelFailed() | HistoryCompacted() | SessionTitled():
                return _of_tokens(event.usage)
            case CallIntended():
                return UsageCounts(calls=1)
            case CallRefused():
                return UsageCounts(refused=1)
            case CommandStarted():
                return UsageCounts(commands=1)
            case EscalationOpened():
                self.asked[session, event.escalation.id] = at_ms
                return UsageCounts(prompts=1)
            case EscalationAnswered():
                since = self._settle(session, event.escalation)
                return UsageCounts(answered=1, answer_ms=max(0, at_ms - (at_ms if since is None else since)))
            case EscalationExpired():
                self._settle(session, event.escalation)
                return None
            case _:
                return None

    def _settle(self, session: SessionId, escalation: str) -> int | None:
        self.settled.add((session, escalation))
        return self.asked.pop((session, escalation), None)


FOLDED = frozenset(
    str(kind.__struct_config__.tag)
    for kind in (
        *(SessionOpened, SessionReconfigured, ModelAsked, Noted, ModelReplied, ModelFailed, HistoryCompacted),
        *(SessionTitled, CallIntended, CallRefused, CommandStarted),
        *(EscalationOpened, EscalationAnswered, EscalationExpired),
    )
)
"""The tags of the events that matter; the others need not be decoded."""


def is_folded(body: bytes) -> bool:
    """Whether an encoded event matters, from its tag, which comes first."""
    _, _, rest = body[:80].partition(b'":"')
    return rest.partition(b'"')[0].decode("latin-1") in FOLDED


def _of_tokens(used: Usage) -> UsageCounts:
    return UsageCounts(
        nano_usd=0 if used.cost_usd is None else round(used.cost_usd * _NANO),
        unpriced=int(used.cost_usd is None),
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cached_tokens=used.cached_tokens,
        requests=1,
    )
