"""The log of a session: what was said, called, run and noted, an event a line, from its journal."""

from collections import deque
from collections.abc import Iterator
from datetime import datetime

from holdfast.cli.terminal.console import visible
from holdfast.cli.views.narrator import describe, why_it_ended
from holdfast.cli.views.result import in_words
from holdfast.core import budget_word, pluralize
from holdfast.core.events import (
    BudgetWarned,
    CallIntended,
    CallRefused,
    CallSettled,
    CodePosted,
    EscalationAnswered,
    EscalationExpired,
    EscalationOpened,
    HistoryCompacted,
    MessagePosted,
    ModelFailed,
    ModelReplied,
    Noted,
    RecordedEvent,
    RunEnded,
    RunStarted,
    SessionRewound,
    TurnEnded,
)

MOST_EVENTS = 10_000
"""Of a longer session `holdfast show --events` tells the rest."""
_EXCERPT = 200


class SessionLog:
    """Follows a session; made into lines only when somebody asks for them."""

    def __init__(self) -> None:
        self._entries: deque[RecordedEvent] = deque(maxlen=MOST_EVENTS)

    def __call__(self, entry: RecordedEvent) -> None:
        self._entries.append(entry)

    def lines(self) -> list[str]:
        """What happened so far, oldest first."""
        return [line for entry in self._entries for line in log_lines(entry)]


def log_lines(entry: RecordedEvent) -> Iterator[str]:
    """What an event is worth in the log: a line with its time, a note also several, or none."""
    told = _told(entry)
    if told is None:
        return
    who, what = told
    at = datetime.fromtimestamp(entry.at_ms / 1000).strftime("%H:%M:%S")
    # A note is whole: it may be the trace of a fault, and stands nowhere else.
    first, *rest = visible(what).splitlines() if isinstance(entry.event, Noted) else [_excerpt(what)]
    yield f"{at}  {who:<6}  {first}".rstrip()
    yield from (f"{'':18}{line}" for line in rest)


def _told(entry: RecordedEvent) -> tuple[str, str] | None:
    match event := entry.event:
        case MessagePosted():
            return "you", f"turn {event.turn}: {event.text}"
        case CodePosted():
            return "code", f"turn {event.turn}: {event.code}"
        case ModelReplied():
            usage = event.usage
            took = f"{pluralize(usage.input_tokens, 'token')} in, {usage.output_tokens} out"
            return "model", f"step {event.step}, {took}: {event.message.text}"
        case ModelFailed():
            return "model", f"step {event.step} failed: {event.reason} ({event.code})"
        case RunStarted():
            return "run", f"in {event.engine}: {event.code}"
        case RunEnded():
            gist = why_it_ended(event) or event.printed.strip()
            return "run", f"{event.status}: {gist}" if gist else event.status
        case CallIntended():
            return "call", f"{event.call.id} {event.decision.verdict} {describe(event.call)}"
        case CallRefused():
            return "call", f"{event.call.id} refused {describe(event.call)}: {event.decision.reason}"
        case CallSettled():
            error = f": {event.error}" if event.error else ""
            return "call", f"{event.call} {event.status} after {event.duration_ms:.1f} ms{error}"
        case EscalationOpened():
            return "asks", f"{event.escalation.call.id} {describe(event.escalation.call)}"
        case EscalationAnswered():
            return "answer", f"{event.response.verdict} ({event.response.scope}), by {event.transport}"
        case EscalationExpired():
            return "answer", f"none: {event.reason}"
        case HistoryCompacted():
            return "note", f"turns up to {event.through} were summed up"
        case SessionRewound():
            return "note", f"gone back to the end of turn {event.turn}"
        case BudgetWarned():
            return "budget", f"{budget_word(event.dimension)}: {event.spent} of {event.limit} spent"
        case Noted():
            return "note", f"{event.code}: {event.text}"
        case TurnEnded():
            return "turn", f"{event.turn} {in_words(event.outcome)}, {event.wall_seconds:.1f} s"
        case _:
            return None


def _excerpt(text: str) -> str:
    words = " ".join(visible(text).split())
    return words if len(words) <= _EXCERPT else f"{words[: _EXCERPT - 1]}…"
