"""A notification: what reaches a person who looks elsewhere.

Its words are ours: names and counts. What an agent, a file or a call says goes only to a target marked `private`.
"""

import hashlib

from holdfast.core import (
    Escalation,
    Needs,
    Nonconverged,
    Outcome,
    SessionId,
    Value,
    escape_to_one_line,
    is_short_id,
    is_success,
    pluralize,
)
from holdfast.core.approval_text import describe_call_lines, describe_effect, describe_reason, visible
from holdfast.session import Topic

MAX_NAME = 60
MAX_DETAIL = 1500


class Notification(Value):
    """One message for every target that wants its topic."""

    id: str
    """The same for the same event, so that a receiver can drop a repetition."""
    topic: Topic
    session: SessionId
    title: str
    text: str
    detail: str = ""
    """For private targets only: the call that waits, or the answer."""
    link: str = ""
    """The page of what waits, where the web page runs."""


def call_waits(session: SessionId, name: str | None, escalation: Escalation, *, count: int) -> Notification:
    """A call waits for approval; `count` calls of the session wait in all."""
    waiting = "1 call waits" if count == 1 else f"{count} calls wait"
    detail = "\n".join(
        [
            describe_effect(escalation),
            f"reason: {describe_reason(escalation)}",
            *(visible(line[:200]) for line in describe_call_lines(escalation.call)[:20]),
        ]
    )
    return Notification(
        id=_id(session, "waits", escalation.id),
        topic="waits",
        session=session,
        title="Holdfast: a call waits for your approval",
        text=f"{waiting} for your approval in {_shown(name, session)}",
        detail=detail[:MAX_DETAIL],
    )


def turn_ended(
    session: SessionId, name: str | None, turn: int, outcome: Outcome, *, proposals: int
) -> Notification | None:
    """A turn finished or failed; None where it only waits, which is a separate notification."""
    if isinstance(outcome, Needs) and outcome.need == "approval":
        return None
    shown = _shown(name, session)
    if is_success(outcome):
        staged = f"; {pluralize(proposals, 'change')} to look at" if proposals else ""
        value = getattr(outcome, "value", None)
        return Notification(
            id=_id(session, "finished", str(turn)),
            topic="finished",
            session=session,
            title="Holdfast: the agent has finished",
            text=f"turn {turn} of {shown} has finished{staged}",
            detail=escape_to_one_line(value[:MAX_DETAIL]) if isinstance(value, str) else "",
        )
    return Notification(
        id=_id(session, "failed", str(turn)),
        topic="failed",
        session=session,
        title="Holdfast: the agent has stopped",
        text=f"turn {turn} of {shown} {_reason(outcome)}",
    )


def budget_warned(
    session: SessionId, name: str | None, dimension: str, spent: str, limit: str, seq: int
) -> Notification:
    """Four fifths of a limit are spent."""
    return Notification(
        id=_id(session, "budget", str(seq)),
        topic="budget",
        session=session,
        title="Holdfast: a budget is nearly spent",
        text=f"{_shown(name, session)} has spent {spent} of {limit} {dimension.replace('_', ' ')}",
    )


def agent_waits(session: SessionId, agent: str, folder: str, message: str, at_ms: int) -> Notification:
    """An external agent asks its own user, in its own window."""
    return Notification(
        id=_id(session, "asks", str(at_ms)),
        topic="waits",
        session=session,
        title=f"Holdfast: {agent} waits for you",
        text=f"{agent} waits for you in {visible(folder[:MAX_NAME])!r}",
        detail=escape_to_one_line(message[:MAX_DETAIL]),
    )


def sample_notification() -> Notification:
    """What `holdfast notify test` sends."""
    return Notification(
        id="test",
        topic="finished",
        session=SessionId("test"),
        title="Holdfast: a test",
        text="This is what a notification of Holdfast looks like.",
        detail="This target is private, so it also gets details.",
    )


def _reason(outcome: Outcome) -> str:
    if isinstance(outcome, Needs):
        return f"needs {'an answer' if outcome.need == 'clarification' else outcome.need} from you"
    if isinstance(outcome, Nonconverged):
        return {
            "budget": "has spent its budget",
            "max-iterations": "reached its limit of steps",
            "cancelled": "was cancelled",
        }[outcome.reason]
    return "ended with an error"


def _shown(name: str | None, session: SessionId) -> str:
    if name:
        return f"{visible(name[:MAX_NAME])!r}"
    short = session.rpartition("-")[2]
    return f"session {short if is_short_id(short) else session}"


def _id(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
