"""A real gate over an in-memory journal, as the gate client of a proxy under test."""

from collections.abc import Mapping, Sequence

from holdfast.core import EXTERNAL, Paths, SystemClock, Toolset, Verdict
from holdfast.core.events import SessionOpened
from holdfast.gate import Gate, GateSettings
from holdfast.policy import FixedPolicy, LexicalPaths
from holdfast.session import ExternalAgentSession
from holdfast.store import Journal, MemoryStore


class RecordedGateClient(ExternalAgentSession):
    """The gate client that `holdfast proxy` uses, with its journal exposed."""

    def __init__(self, gate: Gate, journal: Journal) -> None:
        super().__init__(
            gate, journal, clock=SystemClock(), description="served to another agent", transport="proxy"
        )
        self.journal = journal


async def open_gate_client(
    toolsets: Sequence[Toolset], verdicts: Mapping[str, Verdict], *, paths: Paths | None = None
) -> RecordedGateClient:
    """A gate with these verdicts, which allows every other operation."""
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
    return RecordedGateClient(gate, journal)
