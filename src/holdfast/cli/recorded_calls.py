"""The calls of a journal with what the policy of the day said of them, to be judged anew."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from holdfast.core import SessionId
from holdfast.core.events import (
    CallIntended,
    CallRefused,
    EscalationOpened,
    Recorded,
    SessionOpened,
    SessionReconfigured,
    SessionRewound,
)
from holdfast.policy import LexicalPaths, RecordedCall

_HEEDED = frozenset(
    {SessionOpened, SessionReconfigured, SessionRewound, EscalationOpened, CallRefused, CallIntended}
)


class RecordedCalls:
    """Finds the calls in one journal after the other; one that forks share is found once."""

    def __init__(self, workspace: Callable[[SessionId], Path]) -> None:
        self._workspace = workspace
        """Of a session that names none."""
        self._home = str(Path.home())
        self._ends: dict[SessionId, int] = {}
        """How far the events that a session wrote are known. Whoever has some of them has all before."""

    def find(self, recorded: Iterable[Recorded]) -> Iterator[RecordedCall]:
        """Each call with the first word of the policy: an escalation was one though it was answered, or nobody could be asked.

        What the gate itself refused, for its shape or for want of budget, no policy was asked about.
        """
        asked: set[str] = set()
        paths = LexicalPaths()
        for entry in recorded:
            if type(entry.event) not in _HEEDED:  # as most are; to match them takes longer
                continue
            is_new = entry.seq > self._ends.get(entry.session, 0)
            if is_new:
                self._ends[entry.session] = entry.seq
            match event := entry.event:
                case SessionOpened():
                    folder = event.workspace or str(self._workspace(entry.session))
                    paths = LexicalPaths(folder, home=self._home)
                case SessionReconfigured(workspace=folder) if folder:
                    paths = LexicalPaths(folder, home=self._home)
                case SessionRewound():
                    asked.clear()  # the numbers of its calls are given to others
                case EscalationOpened(escalation=escalation):
                    asked.add(escalation.call.id)
                    if is_new:
                        yield RecordedCall(escalation.call, escalation.decision, entry.session, paths)
                case CallRefused() | CallIntended() if is_new and event.call.id not in asked:
                    decision = event.decision
                    if decision.source.endswith("(no-handler)"):
                        decision = msgspec.structs.replace(decision, verdict="escalate")
                    if decision.source != "gate":
                        yield RecordedCall(event.call, decision, entry.session, paths)
                case _:
                    pass
