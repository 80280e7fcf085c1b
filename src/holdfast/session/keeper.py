"""The gate for an agent that is not ours: one turn, its calls numbered, each judged and on the record.

A foreign agent (over the proxy, or a hook of its program) has its own model and its own loop; all it is given is this.
"""

from holdfast.core import (
    EXTERNAL,
    Answer,
    Call,
    CallId,
    Escalation,
    EscalationId,
    Ok,
    Principal,
    Response,
    SessionId,
    Tool,
    call_id,
)
from holdfast.core.events import CallIntended, CallRefused, EscalationOpened, MessagePosted, TurnEnded
from holdfast.gate import Gate
from holdfast.store import Journal

_TURN = 1


class Gatekeeper:
    """What a foreign agent sees of a session. Its turn begins when it first comes and ends when it leaves for good."""

    def __init__(self, gate: Gate, journal: Journal) -> None:
        self._gate = gate
        self._journal = journal
        self._calls = _calls(journal)

    @property
    def session(self) -> SessionId:
        """The session that the calls are recorded in."""
        return self._journal.session

    async def begin(self, what: str, *, transport: str) -> None:
        """Begin the turn, unless it is open from before."""
        if not any(isinstance(entry.event, MessagePosted) for entry in self._journal.recorded):
            posted = MessagePosted(turn=_TURN, text=what, principal=EXTERNAL, transport=transport)
            await self._journal.append(posted)

    async def end(self) -> None:
        """The agent has left for good."""
        await self._journal.append(TurnEnded(turn=_TURN, outcome=Ok()))

    def tools(self) -> tuple[Tool, ...]:
        """What the agent may be shown."""
        return self._gate.tools()

    def next_call(self) -> CallId:
        """The id of the next call."""
        self._calls += 1
        return call_id(_TURN, self._calls)

    async def submit(self, call: Call) -> Answer:
        """Judge and carry out a call."""
        return await self._gate.submit(call)

    async def wait(self, escalation: EscalationId) -> None:
        """Return when the escalation is settled."""
        await self._gate.wait(escalation)

    def escalation(self, escalation: EscalationId) -> Escalation | None:
        """What waits under this id."""
        return next((each for each in self._gate.escalations.waiting() if each.id == escalation), None)

    async def resolve(
        self, escalation: EscalationId, response: Response, *, principal: Principal, transport: str
    ) -> None:
        """Record an answer."""
        await self._gate.resolve(escalation, response, principal=principal, transport=transport)

    async def withdraw(self, escalation: EscalationId, reason: str) -> None:
        """Wait no longer for an answer here: a no, with the reason on the record."""
        await self._gate.escalations.expire(escalation, reason)


def _calls(journal: Journal) -> int:
    """How many calls the session has seen."""
    ids = {
        entry.event.escalation.call.id if isinstance(entry.event, EscalationOpened) else entry.event.call.id
        for entry in journal.recorded
        if isinstance(entry.event, CallIntended | CallRefused | EscalationOpened)
    }
    return len(ids)
