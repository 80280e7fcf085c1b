"""The calls of a journal with what the policy of the day said of them, to be judged anew."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from holdfast.core import SessionId
from holdfast.core.events import (
    CallIntended,
    CallRefused,
    EscalationOpened,
    Recorded,
    SessionOpened,
    SessionRewound,
)
from holdfast.policy import LexicalPaths, RecordedCall

Place = tuple[SessionId, int]
"""Where an event stands, however many forks have it in their history."""


def recorded_calls(
    recorded: Iterable[Recorded], session: str, workspace: Path
) -> Iterator[tuple[Place, RecordedCall]]:
    """Each call with the first word of the policy: an escalation was one though it was answered, or nobody could be asked.

    What the gate itself refused, for its shape or for want of budget, no policy was asked about.
    """
    asked: set[str] = set()
    paths = LexicalPaths(str(workspace), home=str(Path.home()))
    for entry in recorded:
        place = (entry.session, entry.seq)
        match event := entry.event:
            case SessionOpened(workspace=folder) if folder:
                paths = LexicalPaths(folder, home=str(Path.home()))
            case SessionRewound():
                asked.clear()  # the numbers of its calls are given to others
            case EscalationOpened():
                asked.add(event.escalation.call.id)
                yield place, RecordedCall(event.escalation.call, event.escalation.decision, session, paths)
            case CallRefused() | CallIntended() if event.call.id not in asked:
                decision = event.decision
                if decision.source.endswith("(no-handler)"):
                    decision = msgspec.structs.replace(decision, verdict="escalate")
                if decision.source != "gate":
                    yield place, RecordedCall(event.call, decision, session, paths)
            case _:
                pass
