"""The calls of a journal with what the policy of the day said of them, to be judged anew."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from holdfast.core.events import AnyEvent, CallIntended, CallRefused, EscalationOpened, SessionOpened
from holdfast.policy import LexicalPaths, RecordedCall


def recorded_calls(events: Iterator[AnyEvent], session: str, workspace: Path) -> Iterator[RecordedCall]:
    """Each call with the first word of the policy: an escalation was one though it was answered, or nobody could be asked.

    What the gate itself refused, for its shape or for want of budget, no policy was asked about.
    """
    asked: set[str] = set()
    paths = LexicalPaths(str(workspace), home=str(Path.home()))
    for event in events:
        match event:
            case SessionOpened(workspace=folder) if folder:
                paths = LexicalPaths(folder, home=str(Path.home()))
            case EscalationOpened():
                asked.add(event.escalation.call.id)
                yield RecordedCall(event.escalation.call, event.escalation.decision, session, paths)
            case CallRefused() | CallIntended() if event.call.id not in asked:
                decision = event.decision
                if decision.source.endswith("(no-handler)"):
                    decision = msgspec.structs.replace(decision, verdict="escalate")
                if decision.source != "gate":
                    yield RecordedCall(event.call, decision, session, paths)
            case _:
                pass
