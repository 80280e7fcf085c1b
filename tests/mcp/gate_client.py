"""A real gate over an in-memory journal, as the gate client of a proxy under test."""

from collections.abc import Mapping, Sequence

from holdfast.core import EXTERNAL, Paths, SystemClock, Toolset, Verdict
from holdfast.core.events import SessionOpened
from holdfast.gate import Gate, GateSettings
from holdfast.policy import FixedPolicy, LexicalPaths, Policy
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
    toolsets: Sequence[Toolset],
    verdicts: Mapping[str, Verdict],
    *,
    paths: Paths | None = None,
    policy: Policy | None = None,
    can_ask: bool = True,
) -> RecordedGateClient:
    """A gate with these verdicts, which allows every other operation; or with another policy."""
    clock = SystemClock()
    policy = policy or FixedPolicy(default="allow", verdicts=verdicts)
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
        settings=GateSettings(escalation_seconds=30.0, can_ask=can_ask),
    )
    return RecordedGateClient(gate, journal)
