"""Test support: a session with the real gate and the real turn, whose store, files and model are in memory.

async with memory_session([use("execute_code", {"code": "..."}), "Done."]) as session:
    outcome = await session.send("hello")
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial

from holdfast.agent import SessionGuests
from holdfast.commands import Program, SandboxStatus, ScriptedFile, ScriptedSandbox
from holdfast.core import PERSON, Clock, Escalation, FakeClock, Limits, Outcome, Response, Toolset
from holdfast.core.events import SessionOpened
from holdfast.guests import Engine, ScriptedEngine
from holdfast.models import Model, ScriptedModel, ScriptedReply
from holdfast.policy import FixedPolicy, LexicalPaths, Policy
from holdfast.session import Session, SessionParts, Settings, build_session
from holdfast.store import MemoryStore, Store
from holdfast.world import MemoryWorld, StagedWorld, World

__all__ = ["ScriptedTransport", "memory_session"]


@asynccontextmanager
async def memory_session(
    replies: Sequence[ScriptedReply] = (),
    *,
    model: Model | None = None,
    policy: Policy | None = None,
    world: World | None = None,
    engine: Engine | None = None,
    store: Store | None = None,
    clock: Clock | None = None,
    settings: Settings | None = None,
    limits: Limits | None = None,
    toolsets: Sequence[Toolset] = (),
    can_ask: bool = True,
    instructions: str = "",
    programs: Mapping[str, Program] | None = None,
) -> AsyncIterator[Session]:
    """Open a session in memory. Pass a part to share it between sessions or to inspect it.

    With `programs`, even an empty table, the session has a scripted command sandbox and the `shell.*` tools.
    """
    world = world or MemoryWorld()
    clock = clock or FakeClock()
    store = store or MemoryStore(clock=clock)
    policy = policy or FixedPolicy(default="allow")
    engine = engine or ScriptedEngine()
    model = model or ScriptedModel(replies)
    opened = SessionOpened(
        principal=PERSON,
        folder="/",
        workspace="/workspace",
        policy=policy.name,
        policy_digest=policy.digest,
        model=model.name,
        limits=limits or Limits(),
    )
    parts = SessionParts(
        journal=await store.create(opened),
        store=store,
        staged=StagedWorld(world),
        paths=LexicalPaths(),
        policy=policy,
        model=model,
        guests=SessionGuests.single(engine.guest()),
        toolsets=toolsets,
        settings=settings or Settings(),
        clock=clock,
        can_ask=can_ask,
        instructions=instructions,
        open_sandbox=None if programs is None else partial(_scripted_sandbox, world, programs),
        sandbox_status=SandboxStatus(tier="none" if programs is None else "full"),
    )
    session = await build_session(parts)
    try:
        yield session
    finally:
        await session.close()
        await engine.close()
        await store.close()


async def _scripted_sandbox(world: World, programs: Mapping[str, Program]) -> ScriptedSandbox:
    def files() -> dict[str, ScriptedFile]:
        return {path: ScriptedFile(world.read(path), world.stat(path).mode) for path in world.files()}

    return ScriptedSandbox(files, programs=programs)


class ScriptedTransport:
    """A transport for tests: sends its messages, answers escalations from a list, and records outcomes and questions."""

    name = "script"

    def __init__(self, messages: Sequence[str], answers: Sequence[Response] = ()) -> None:
        self._messages = tuple(messages)
        self._answers = list(answers)
        self.outcomes: list[Outcome] = []
        self.asked: list[Escalation] = []

    async def run(self, session: Session) -> int:
        session.approver, session.approver_name = self._approve, self.name
        for message in self._messages:
            self.outcomes.append(await session.send(message, transport=self.name))
        return 0

    async def _approve(self, escalation: Escalation) -> Response | None:
        self.asked.append(escalation)
        return self._answers.pop(0) if self._answers else None
