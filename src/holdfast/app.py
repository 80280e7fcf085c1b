"""The composition root: the only place where things are built. Everything else is handed what it needs."""

import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from holdfast.agent import CodeRun, Conversation, Turn
from holdfast.config import Config, home_of, load_config
from holdfast.core import (
    PERSON,
    Clock,
    Limits,
    Paths,
    SessionId,
    SystemClock,
    Toolset,
    sanitise_name,
)
from holdfast.core.errors import InvalidInput
from holdfast.core.events import SessionOpened
from holdfast.gate import Gate, GateSettings, Results
from holdfast.guests import Engine, Guest, GuestLimits, python_engine
from holdfast.models import Model, ModelToolset, open_model, resolve_model, secrets
from holdfast.policy import Policy, load_policy
from holdfast.session import Approver, Host, Session, Status, staged_changes
from holdfast.store import EmbeddedStore, Home, Journal, Store
from holdfast.world import FolderWorld, StagedWorld, World, WorldPaths, WorldToolset, open_folder


class Runtime:
    """A store, an engine and the sessions that live on them. One a process is enough."""

    def __init__(self, *, home: Home, config: Config, store: Store, engine: Engine, clock: Clock) -> None:
        self.home = home
        self.config = config
        self.store = store
        self.host = Host()
        self._engine = engine
        self._clock = clock

    @classmethod
    async def start(
        cls,
        *,
        home: str | Path | None = None,
        config: Config | None = None,
        store: Store | None = None,
        engine: Engine | None = None,
        clock: Clock | None = None,
    ) -> "Runtime":
        """Open the home and everything below it; close it again with `close`."""
        clock = clock or SystemClock()
        place = home_of(home)
        place.prepare()
        return cls(
            home=place,
            config=config or load_config(place),
            store=store or await EmbeddedStore.start(place, clock=clock),
            engine=engine or python_engine(key=place.key()),
            clock=clock,
        )

    async def close(self) -> None:
        """Close every session, then the engine and the store. Idempotent."""
        await self.host.close()
        await self._engine.close()
        await self.store.close()

    async def create(
        self,
        *,
        model: Model | str | None = None,
        workspace: str | Path | None = None,
        policy: Policy | str | None = None,
        name: str | None = None,
        limits: Limits | None = None,
        toolsets: Sequence[Toolset] = (),
        approver: Approver | None = None,
        session: str | None = None,
        can_ask: bool = True,
    ) -> Session:
        """A new session. Without a workspace it gets a folder of its own."""
        judge = self._policy(policy)
        reference = policy if isinstance(policy, str) else judge.name
        folder = open_folder(Path(workspace), self.home.root) if workspace is not None else None
        thinker = self._model(model)
        opened = SessionOpened(
            principal=PERSON,
            folder=os.getcwd(),
            workspace=str(folder) if folder is not None else "",
            policy=_absolute(reference),
            policy_digest=judge.digest,
            model=thinker.name if thinker is not None else "",
            limits=limits or self.config.budget,
            name=sanitise_name(name) if name else None,
        )
        journal = await self.store.create(opened, session=SessionId(session) if session is not None else None)
        return await self._assemble(journal, judge, thinker, toolsets, approver, can_ask)

    async def resume(
        self,
        reference: str,
        *,
        model: Model | str | None = None,
        policy: Policy | str | None = None,
        toolsets: Sequence[Toolset] = (),
        approver: Approver | None = None,
        can_ask: bool = True,
    ) -> Session:
        """Take up a session by id, prefix or name, with the policy and the model it had unless others are given."""
        journal = await self.store.open(await self.store.find(reference))
        try:
            status = Status(journal)
            judge = self._policy(policy or status.policy)
            thinker = self._model(model if model is not None else status.model or None)
            return await self._assemble(journal, judge, thinker, toolsets, approver, can_ask)
        except BaseException:
            await journal.release()
            raise

    async def _assemble(
        self,
        journal: Journal,
        policy: Policy,
        model: Model | None,
        toolsets: Sequence[Toolset],
        approver: Approver | None,
        can_ask: bool,
    ) -> Session:
        opened = journal.recorded[0].event
        assert isinstance(opened, SessionOpened), "every journal begins with SessionOpened"
        root = Path(opened.workspace or self.home.workspace(journal.session))
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        world = FolderWorld(root)
        session = await assemble(
            journal=journal,
            store=self.store,
            world=world,
            paths=WorldPaths(root, protected=(self.home.root,)),
            policy=policy,
            model=model,
            guest=self._engine.guest(),
            toolsets=toolsets,
            config=self.config,
            clock=self._clock,
            can_ask=can_ask,
            on_close=self.host.dismiss,
        )
        session.approver = approver
        self.host.admit(session)
        return session

    def _policy(self, policy: Policy | str | None) -> Policy:
        if policy is None or isinstance(policy, str):
            return load_policy(policy or self.config.policy, search=(self.home.policies,))
        return policy

    def _model(self, model: Model | str | None) -> Model | None:
        if model is not None and not isinstance(model, str):
            return model
        settings = msgspec.structs.replace(self.config.asking, model=self.config.model or "")
        name = model or resolve_model(os.environ, settings)
        return open_model(name, settings=settings) if name is not None else None


def _absolute(policy: str) -> str:
    """A policy's file is remembered by its full path; a name stays a name."""
    return str(Path(policy).resolve()) if Path(policy).is_file() else policy


async def assemble(
    *,
    journal: Journal,
    store: Store,
    world: World,
    paths: Paths,
    policy: Policy,
    model: Model | None,
    guest: Guest,
    config: Config,
    clock: Clock,
    toolsets: Sequence[Toolset] = (),
    can_ask: bool = True,
    on_close: Callable[[SessionId], None] = lambda _: None,
) -> Session:
    """Join the parts of one session: the same road, whatever the parts."""
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
        turn_limits=config.turn_budget,
        settings=GateSettings(
            call_seconds=config.call_seconds,
            escalation_seconds=config.escalation_seconds,
            can_ask=can_ask,
        ),
        results=Results(secrets=secrets(os.environ)),
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
        mode=config.mode,
        max_tokens=config.max_tokens,
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


@asynccontextmanager
async def open(
    model: Model | str | None = None,
    *,
    workspace: str | Path | None = None,
    policy: Policy | str | None = None,
    resume: str | None = None,
    name: str | None = None,
    limits: Limits | None = None,
    toolsets: Sequence[Toolset] = (),
    approver: Approver | None = None,
    home: str | Path | None = None,
) -> AsyncIterator[Session]:
    """A session, new or resumed, for as long as the block runs."""
    if resume is not None and (workspace is not None or name is not None or limits is not None):
        raise InvalidInput(
            "a resumed session keeps its workspace, name and limits", hint="leave them out with resume="
        )
    runtime = await Runtime.start(home=home)
    try:
        if resume is not None:
            yield await runtime.resume(
                resume, model=model, policy=policy, toolsets=toolsets, approver=approver
            )
        else:
            yield await runtime.create(
                model=model,
                workspace=workspace,
                policy=policy,
                name=name,
                limits=limits,
                toolsets=toolsets,
                approver=approver,
            )
    finally:
        await runtime.close()
