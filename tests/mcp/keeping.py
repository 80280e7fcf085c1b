"""A real gate over a journal in memory, as the keeper of a proxy under test."""

from collections.abc import Mapping, Sequence

from holdfast.core import (
    EXTERNAL,
    Answer,
    Call,
    CallId,
    Escalation,
    EscalationId,
    Paths,
    Principal,
    Response,
    SystemClock,
    Tool,
    Toolset,
    Verdict,
    call_id,
)
from holdfast.core.events import SessionOpened
from holdfast.gate import Gate, GateSettings
from holdfast.policy import FixedPolicy, LexicalPaths
from holdfast.store import Journal, MemoryStore


class TestKeeper:
    """What `holdfast proxy` hands to its proxy, with a fixed policy."""

    __test__ = False

    def __init__(self, gate: Gate, journal: Journal) -> None:
        self.gate = gate
        self.journal = journal
        self._calls = 0

    def tools(self) -> tuple[Tool, ...]:
        return self.gate.tools()

    def next_call(self) -> CallId:
        self._calls += 1
        return call_id(1, self._calls)

    async def submit(self, call: Call) -> Answer:
        return await self.gate.submit(call)

    async def wait(self, escalation: EscalationId) -> None:
        await self.gate.wait(escalation)

    def escalation(self, escalation: EscalationId) -> Escalation | None:
        waiting = {each.id: each for each in self.gate.escalations.waiting()}
        return waiting.get(escalation)

    async def resolve(
        self, escalation: EscalationId, response: Response, *, principal: Principal, transport: str
    ) -> None:
        await self.gate.resolve(escalation, response, principal=principal, transport=transport)


async def keeper_for(
    toolsets: Sequence[Toolset], verdicts: Mapping[str, Verdict], *, paths: Paths | None = None
) -> TestKeeper:
    """A gate that says what it was told to, and allows the rest."""
    clock = SystemClock()
    policy = FixedPolicy(default="allow", verdicts=verdicts)
    opened = SessionOpened(
        principal=EXTERNAL,
        folder="/",
        workspace="/",
        policy=policy.name,
        policy_digest=policy.digest,
        model="",
    )
    journal = await MemoryStore(clock=clock).create(opened)
    gate = Gate(
        journal=journal,
        policy=policy,
        toolsets=toolsets,
        paths=paths or LexicalPaths(),
        clock=clock,
        settings=GateSettings(escalation_seconds=30.0),
    )
    return TestKeeper(gate, journal)
