"""The log of a session: messages, runs, calls, answers and notes, one line per event."""

from collections import deque
from collections.abc import Iterator
from datetime import datetime

from holdfast.cli.views.narrator import describe_call, run_error_summary
from holdfast.core import budget_word, escape_invisible, pluralize
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
    InstructionsRead,
    MessagePosted,
    ModelFailed,
    ModelReplied,
    Noted,
    OutputRevealed,
    RecordedEvent,
    RunEnded,
    RunStarted,
    SessionRewound,
    TurnEnded,
)

MAX_EVENTS = 10_000
"""`holdfast show --events` shows the rest of a longer session."""
_EXCERPT = 200


class SessionLog:
    """Collects the events of a session and formats them on demand."""

    def __init__(self) -> None:
        self._entries: deque[RecordedEvent] = deque(maxlen=MAX_EVENTS)

    def __call__(self, entry: RecordedEvent) -> None:
        self._entries.append(entry)

    def lines(self) -> list[str]:
        """The log so far, oldest first."""
        return [line for entry in self._entries for line in log_lines(entry)]


def log_lines(entry: RecordedEvent) -> Iterator[str]:
    """The log lines of an event: one with its time, several for a note, or none."""
    found = _label_and_text(entry)
    if found is None:
        return
    label, text = found
    at = datetime.fromtimestamp(entry.at_ms / 1000).strftime("%H:%M:%S")
    # A note is shown in full: it may be the only copy of a traceback.
    first, *rest = escape_invisible(text).splitlines() if isinstance(entry.event, Noted) else [_excerpt(text)]
    yield f"{at}  {label:<6}  {first}".rstrip()
    yield from (f"{'':18}{line}" for line in rest)


def _label_and_text(entry: RecordedEvent) -> tuple[str, str] | None:
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
            gist = run_error_summary(event) or event.printed.strip()
            return "run", f"{event.status}: {gist}" if gist else event.status
        case CallIntended():
            return "call", f"{event.call.id} {event.decision.verdict} {describe_call(event.call)}"
        case CallRefused():
            return "call", f"{event.call.id} refused {describe_call(event.call)}: {event.decision.reason}"
        case CallSettled():
            error = f": {event.error}" if event.error else ""
            return "call", f"{event.call} {event.status} after {event.duration_ms:.1f} ms{error}"
        case EscalationOpened():
            return "ask", f"{event.escalation.call.id} {describe_call(event.escalation.call)}"
        case EscalationAnswered():
            return "answer", f"{event.response.verdict} ({event.response.scope}), by {event.transport}"
        case EscalationExpired():
            return "answer", f"none: {event.reason}"
        case HistoryCompacted():
            return "note", f"turns up to {event.through} were summarized"
        case InstructionsRead():
            return "note", f"the model got {event.file}, the instructions for its folder"
        case OutputRevealed():
            return "note", f"{event.output} was shown to the model by {event.principal}"
        case SessionRewound():
            return "note", f"rewound to the end of turn {event.turn}"
        case BudgetWarned():
            return "budget", f"{budget_word(event.dimension)}: {event.spent} of {event.limit} spent"
        case Noted():
            return "note", f"{event.code}: {event.text}"
        case TurnEnded():
            from holdfast.services import describe_outcome

            return "turn", f"{event.turn} {describe_outcome(event.outcome)}, {event.wall_seconds:.1f} s"
        case _:
            return None


def _excerpt(text: str) -> str:
    words = " ".join(escape_invisible(text).split())
    return words if len(words) <= _EXCERPT else f"{words[: _EXCERPT - 1]}…"
