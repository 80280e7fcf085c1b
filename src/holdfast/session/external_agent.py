"""The session of an external agent: its calls are numbered in turns, judged and recorded.

An external agent (over the proxy, or through its program's hook) has its own model and loop. A turn is one request of its
user, if its program reports it; otherwise a turn is what the agent does without a long pause.

`expire_orphaned_escalations` ends what such an agent still waited for when its process was killed.
"""

import asyncio
from collections.abc import Sequence

from holdfast.core import (
    EXTERNAL,
    Answer,
    Call,
    CallId,
    Clock,
    Escalation,
    EscalationId,
    Nonconverged,
    Ok,
    Principal,
    Response,
    SessionId,
    Tool,
    call_id,
)
from holdfast.core.errors import SessionHeld
from holdfast.core.events import (
    CallIntended,
    CallRefused,
    EscalationOpened,
    MessagePosted,
    RecordedEvent,
    TurnEnded,
)
from holdfast.gate import Escalations, Gate
from holdfast.store import Follower, Journal, Store

PAUSE_SECONDS = 300.0
"""After this many seconds without a call, the next call starts a new turn."""


class ExternalAgentSession:
    """What an external agent sees of a session."""

    def __init__(
        self,
        gate: Gate,
        journal: Journal,
        *,
        clock: Clock,
        description: str,
        transport: str,
        hidden_tools: frozenset[str] = frozenset(),
    ) -> None:
        """`description` is the text of a turn whose request is not reported; `hidden_tools` are not offered."""
        self._gate = gate
        self._journal = journal
        self._clock = clock
        self._description = description
        self._transport = transport
        self._hidden_tools = hidden_tools
        self._turn, self._is_open, self._calls = _last_turn_state(journal)
        self._calls_in_flight = 0
        self._beginning = asyncio.Lock()

    @property
    def session(self) -> SessionId:
        """The session that records the calls."""
        return self._journal.session

    def follow(self, follower: Follower) -> None:
        """Call a function with every past and future event. It must neither raise nor block."""
        self._journal.follow(follower)

    async def begin(self, what: str) -> None:
        """Start a turn: the agent received a new request."""
        await self.end()
        self._turn, self._calls, self._is_open = self._turn + 1, 0, True
        posted = MessagePosted(turn=self._turn, text=what, principal=EXTERNAL, transport=self._transport)
        await self._journal.append(posted)

    async def end(self) -> None:
        """End the turn: the agent left or starts something else, so its open escalations are withdrawn."""
        for escalation in self._gate.escalations.waiting():
            await self.withdraw(escalation.id, "the agent that asked has left")
        if self._is_open:
            self._is_open = False
            await self._journal.append(TurnEnded(turn=self._turn, outcome=Ok()))

    def tools(self) -> tuple[Tool, ...]:
        """The tools that the agent may be shown."""
        return tuple(tool for tool in self._gate.tools() if tool.name not in self._hidden_tools)

    async def next_call(self) -> CallId:
        """The id of the next call."""
        async with self._beginning:
            if not self._is_open or self._has_paused():
                await self.begin(self._description)
            self._calls += 1
        return call_id(self._turn, self._calls)

    async def submit(self, call: Call) -> Answer:
        """Judge and execute a call."""
        self._calls_in_flight += 1
        try:
            return await self._gate.submit(call)
        finally:
            self._calls_in_flight -= 1

    async def wait(self, escalation: EscalationId) -> None:
        """Wait until the escalation is settled."""
        await self._gate.wait(escalation)

    def escalation(self, escalation: EscalationId) -> Escalation | None:
        """The open escalation with this id."""
        return next((each for each in self._gate.escalations.waiting() if each.id == escalation), None)

    async def resolve(
        self, escalation: EscalationId, response: Response, *, principal: Principal, transport: str
    ) -> None:
        """Record an answer."""
        await self._gate.resolve(escalation, response, principal=principal, transport=transport)

    async def withdraw(self, escalation: EscalationId, reason: str) -> None:
        """Withdraw an escalation: a denial, with the reason on record."""
        await self._gate.escalations.expire(escalation, reason)

    def _has_paused(self) -> bool:
        if not self._calls or self._calls_in_flight or any(self._gate.escalations.waiting()):
            return False
        return self._clock.now_ms() - self._journal.recorded[-1].at_ms > PAUSE_SECONDS * 1000


def _last_turn_state(journal: Journal) -> tuple[int, bool, int]:
    """The number of the last turn, whether it is open, and the number of its last call."""
    turn, is_open, last = 0, False, 0
    for entry in journal.recorded:
        match event := entry.event:
            case MessagePosted():
                turn, is_open, last = event.turn, True, 0
            case TurnEnded():
                is_open = False
            case CallIntended() | CallRefused():
                last = max(last, _number(event.call.id))
            case EscalationOpened():
                last = max(last, _number(event.escalation.call.id))
            case _:
                pass
    return turn, is_open, last


def _number(id: CallId) -> int:
    """The number of a call. Numbers may be missing (calls withdrawn before they were recorded); none is used twice."""
    return int(id.split(".")[1])


ORPHANED_REASON = "the program that asked is gone"


async def expire_orphaned_escalations(store: Store, *, clock: Clock, transport: str) -> int:
    """Expire the escalations of sessions of a transport that no process holds; returns how many."""
    expired = 0
    for summary in await store.sessions():
        if summary.activity != "waiting":
            continue
        last = _last_message(await store.read(summary.id))
        if last is not None and last.transport == transport:
            expired += await _expire_session(store, summary.id, clock, turn=last.turn)
    return expired


async def _expire_session(store: Store, session: SessionId, clock: Clock, *, turn: int) -> int:
    try:
        journal = await store.open(session)
    except SessionHeld:
        return 0
    try:
        escalations = Escalations(journal, clock=clock)
        waiting = escalations.waiting()
        for escalation in waiting:
            await escalations.expire(escalation.id, ORPHANED_REASON)
        await journal.append(TurnEnded(turn=turn, outcome=Nonconverged(reason="cancelled")))
        return len(waiting)
    finally:
        await journal.release()


def _last_message(recorded: Sequence[RecordedEvent]) -> MessagePosted | None:
    return next((each.event for each in reversed(recorded) if isinstance(each.event, MessagePosted)), None)
