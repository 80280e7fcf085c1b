"""Joining the parts of one session: the same road, whatever the parts. Which parts they are is decided above."""

from collections.abc import Callable, Sequence

from holdfast.agent import CodeRun, Conversation, Turn
from holdfast.core import Clock, Paths, SessionId, Toolset
from holdfast.gate import Gate, GateSettings, Results
from holdfast.guests import Guest, GuestLimits
from holdfast.models import Model, ModelToolset
from holdfast.policy import Policy
from holdfast.session.session import Session
from holdfast.session.settings import Settings
from holdfast.session.staging import staged_changes
from holdfast.session.status import Status
from holdfast.store import Journal, Store
from holdfast.world import StagedWorld, World, WorldToolset


async def assemble(
    *,
    journal: Journal,
    store: Store,
    world: World,
    paths: Paths,
    policy: Policy,
    model: Model | None,
    guest: Guest,
    settings: Settings,
    clock: Clock,
    toolsets: Sequence[Toolset] = (),
    secrets: tuple[str, ...] = (),
    can_ask: bool = True,
    on_close: Callable[[SessionId], None] = lambda _: None,
) -> Session:
    """One live session over these parts; its staged changes are brought back from the journal."""
    status, conversation = Status(journal), Conversation(journal)
    staged = StagedWorld(world)
    changes = staged_changes(journal.recorded)
    contents = {
        change.after: await store.blob(change.after) for change in changes if change.after is not None
    }
    staged.restage(changes, contents.__getitem__)
    own: list[Toolset] = [WorldToolset(world, staged, keep=store.put_blob)]
    if model is not None:
        own.append(ModelToolset(model))
    gate = Gate(
        journal=journal,
        policy=policy,
        toolsets=[*own, *toolsets],
        paths=paths,
        clock=clock,
        turn_limits=settings.turn_budget,
        settings=GateSettings(
            call_seconds=settings.call_seconds,
            escalation_seconds=settings.escalation_seconds,
            can_ask=can_ask,
        ),
        results=Results(secrets=secrets),
    )
    code = CodeRun(
        journal=journal,
        conversation=conversation,
        gate=gate,
        guest=guest,
        fetch=store.blob,
        clock=clock,
        limits=GuestLimits(),
    )
    turn = Turn(
        journal=journal,
        conversation=conversation,
        gate=gate,
        code=code,
        model=model,
        clock=clock,
        proposals=lambda: tuple(proposal.path for proposal in staged.proposals()),
        mode=settings.mode,
        max_tokens=settings.max_tokens,
    )
    return Session(
        journal=journal,
        conversation=conversation,
        status=status,
        gate=gate,
        turn=turn,
        guest=guest,
        workspace=world,
        staged=staged,
        on_close=on_close,
    )
