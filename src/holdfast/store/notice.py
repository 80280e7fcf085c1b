"""The resume notice: what a person is shown when a session is taken up again. It is never sent to a model."""

from collections.abc import Sequence
from datetime import UTC, datetime

from holdfast.core.events import MessagePosted, ModelReplied, Recorded
from holdfast.core.fold import effective
from holdfast.store.contract import SessionSummary


def resume_notice(summary: SessionSummary, recorded: Sequence[Recorded]) -> str:
    """Who, when, how far, and what waits."""
    counted = effective(recorded)
    asked = sum(isinstance(one.event, MessagePosted) for one in counted)
    answered = sum(isinstance(one.event, ModelReplied) for one in counted)
    lines = [
        f"Resuming session {summary.name or summary.id}",
        f"Created: {_time(summary.created_ms)}",
        f"Last activity: {_time(summary.active_ms)}",
        f"Total messages: {asked + answered} ({asked} from user, {answered} from assistant)",
    ]
    if summary.description:
        lines.append(f"Description: {summary.description}")
    if summary.first_words:
        words = " ".join(summary.first_words.split())
        lines.append(f"First topic: {words[:80]}{'…' if len(words) > 80 else ''}")
    if summary.activity == "waiting":
        lines.append("A call waits for your answer.")
    elif summary.activity == "processing":
        lines.append("The last turn is not over; it goes on from where it was.")
    return "\n".join(lines)


def _time(milliseconds: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03d}Z"
