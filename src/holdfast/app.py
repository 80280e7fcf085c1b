"""The composition root: the only place where things are built. Everything else is handed what it needs."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from holdfast.core import (
    PERSON,
    Clock,
    Limits,
    SystemClock,
    Toolset,
    check_session_id,
    sanitise_name,
)
from holdfast.core.errors import InvalidInput, ModelMissing
from holdfast.core.events import Parent, RestorePointMade, SessionOpened, SessionReconfigured, TurnEnded
from holdfast.core.fold import effective
from holdfast.guests import Engines, Sandbox
from holdfast.mcp import McpToolset, ServerSpec, Shelf, secrets_of, start_servers
from holdfast.models import Model, open_model, resolve_model, secrets
from holdfast.policy import Policy, load_policy
from holdfast.session import (
    Approver,
    Host,
    Session,
    Settings,
    Status,
    assemble,
    last_point,
    plan_rewind,
    workspace_of,
)
from holdfast.store import (
    SHORTEST_SECRET,
    EmbeddedStore,
    Home,
    Journal,
    Redactor,
    Store,
    export_session,
    import_session,
)
from holdfast.world import FolderWorld, RestorePoints, WorldPaths, open_folder


class Runtime:
    """A store, an engine and the sessions that live on them. One a process is enough."""

    def __init__(
        self,
        *,
        home: Home,
        settings: Settings,
        store: Store,
        engines: Engines,
        clock: Clock,
        servers: Sequence[ServerSpec] = (),
    ) -> None:
        self.home = home
        self.settings = settings
        self.store = store
        self.host = Host()
        self._engines = engines
        self._clock = clock
        self._servers = tuple(servers)

    @classmethod
    async def start(
        cls,
        *,
        home: str | Path | None = None,
        settings: Settings | None = None,
        store: Store | None = None,
        engines: Engines | None = None,
        clock: Clock | None = None,
        servers: Sequence[ServerSpec] = (),
    ) -> "Runtime":
        """Open the home and everything below it; close it again with `close`."""
        clock = clock or SystemClock()
        place = Home(Path(home)) if home is not None else Home.default()
        place.prepare()
        return cls(
            home=place,
            settings=settings or Settings(),
            store=store or await EmbeddedStore.start(place, clock=clock, redact=_redactor(servers)),
            engines=engines or Engines(key=place.key(), cache=place.cache),
            clock=clock,
            servers=servers,
        )

    async def close(self) -> None:
        """Close every session, then the engine and the store. Idempotent."""
        await self.host.close()
        await self._engines.close()
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
        sandbox: Sandbox | None = None,
        needs_model: bool = True,
    ) -> Session:
        """A new session. Without a workspace it gets a folder of its own."""
        judge = self._policy(policy)
        reference = policy if isinstance(policy, str) else judge.name
        folder = open_folder(Path(workspace), self.home.root) if workspace is not None else None
        thinker = self._model(model) if needs_model else None
        opened = SessionOpened(
            principal=PERSON,
            folder=os.getcwd(),
            workspace=str(folder) if folder is not None else "",
            policy=_absolute(reference),
            policy_digest=judge.digest,
            model=thinker.name if thinker is not None else "",
            limits=limits or self.settings.budget,
            name=sanitise_name(name) if name else None,
        )
        journal = await self.store.create(
            opened, session=check_session_id(session) if session is not None else None
        )
        return await self._assemble(
            journal, judge, thinker, toolsets, approver, can_ask, sandbox or self.settings.sandbox
        )

    async def resume(
        self,
        reference: str,
        *,
        model: Model | str | None = None,
        policy: Policy | str | None = None,
        toolsets: Sequence[Toolset] = (),
        approver: Approver | None = None,
        can_ask: bool = True,
        sandbox: Sandbox | None = None,
        needs_model: bool = True,
    ) -> Session:
        """Take up a session by id, prefix or name, with the policy and the model it had unless others are given."""
        journal = await self.store.open(await self.store.find(reference))
        try:
            status = Status(journal)
            judge = self._policy(policy or status.policy)
            thinker = (
                self._model(model if model is not None else status.model or None) if needs_model else None
            )
            await _record_changes(journal, status, policy, judge, thinker)
            return await self._assemble(
                journal, judge, thinker, toolsets, approver, can_ask, sandbox or self.settings.sandbox
            )
        except BaseException:
            await journal.release()
            raise

    async def sandbox(
        self, session: str | None = None, *, sandbox: Sandbox = "wasi", policy: Policy | str | None = None
    ) -> Session:
        """A session to run code in, without a model: new, or the one of this id with its files and variables."""
        known = {each.id for each in await self.store.sessions()} if session is not None else set()
        if session in known:
            return await self.resume(str(session), sandbox=sandbox, policy=policy, needs_model=False)
        return await self.create(session=session, sandbox=sandbox, policy=policy, needs_model=False)

    async def fork(
        self,
        reference: str,
        *,
        at: int | None = None,
        name: str | None = None,
        model: Model | str | None = None,
        policy: Policy | str | None = None,
        approver: Approver | None = None,
        needs_model: bool = True,
    ) -> Session:
        """A new session that goes on from the end of a turn of another: its chat, files, staged changes, budget and grants.

        It works in a folder of its own, so the two cannot get in each other's way.
        """
        parent = await self.store.find(reference)
        recorded = await self.store.read(parent)
        turns = [entry.event.turn for entry in effective(recorded) if isinstance(entry.event, TurnEnded)]
        if not turns and at is None:
            raise InvalidInput("this session has no finished turn to go on from")
        plan = plan_rewind(recorded, at if at is not None else turns[-1])
        before = [entry.event for entry in recorded if isinstance(entry.event, SessionOpened)][-1]
        opened = msgspec.structs.replace(
            before,
            folder=os.getcwd(),
            workspace="",
            name=sanitise_name(name) if name else None,
            parent=Parent(session=parent, seq=plan.seq),
        )
        journal = await self.store.fork(parent, at=plan.seq, opened=opened)
        try:
            root = self.home.workspace(journal.session)
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            await RestorePoints(root, keep=self.store.put_blob, fetch=self.store.blob).restore(plan.manifest)
            thinker = (
                self._model(model if model is not None else before.model or None) if needs_model else None
            )
            return await self._assemble(
                journal,
                self._policy(policy or before.policy),
                thinker,
                (),
                approver,
                True,
                self.settings.sandbox,
            )
        except BaseException:
            await journal.release()
            raise

    async def snapshot(self, reference: str, path: str | Path) -> None:
        """Write a session into one file, with its history, its files and what is staged. Raises InvalidInput."""
        session = await self.store.find(reference)
        live = next((each for each in self.host.live() if each.id == session), None)
        if live is not None:
            await live.keep_files()
        await export_session(self._embedded(), session, Path(path), now_ms=self._clock.now_ms())

    async def restore(
        self,
        path: str | Path,
        *,
        model: Model | str | None = None,
        policy: Policy | str | None = None,
        approver: Approver | None = None,
        needs_model: bool = True,
    ) -> Session:
        """Take up a session from a snapshot of another home, in a folder of its own; grants given there do not hold here."""
        session = await import_session(self._embedded(), Path(path), now_ms=self._clock.now_ms())
        point = last_point(await self.store.read(session))
        if point is not None and isinstance(point.event, RestorePointMade):
            root = self.home.workspace(session)
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            files = RestorePoints(root, keep=self.store.put_blob, fetch=self.store.blob)
            await files.restore(point.event.manifest)
        return await self.resume(
            session, model=model, policy=policy, approver=approver, needs_model=needs_model
        )

    def _embedded(self) -> EmbeddedStore:
        if not isinstance(self.store, EmbeddedStore):
            raise InvalidInput("only a store on disk writes and reads snapshots")
        return self.store

    async def _assemble(
        self,
        journal: Journal,
        policy: Policy,
        model: Model | None,
        toolsets: Sequence[Toolset],
        approver: Approver | None,
        can_ask: bool,
        sandbox: Sandbox,
    ) -> Session:
        root = Path(workspace_of(journal.recorded) or self.home.workspace(journal.session))
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        world = FolderWorld(root)
        view = self.home.prepare_session(journal.session) / "view"
        view.mkdir(mode=0o700, exist_ok=True)
        paths = WorldPaths(root, protected=(self.home.root,))
        servers = self._server_toolsets(root, paths)
        session = await assemble(
            journal=journal,
            store=self.store,
            world=world,
            paths=paths,
            policy=policy,
            model=model,
            guest=self._engines.guest(sandbox, workspace=root, view=view),
            root=root,
            view=FolderWorld(view),
            toolsets=[*toolsets, *servers],
            language=self._engines.toolsets(sandbox),
            closers=[server.close for server in servers],
            settings=self.settings,
            secrets=_handed_out(self._servers),
            clock=self._clock,
            can_ask=can_ask,
            home=self.home,
            on_close=self.host.dismiss,
        )
        session.approver = approver
        self.host.admit(session)
        for name, error in (await start_servers(servers)).items():
            await session.note("server-failed", f"{name} did not start and its tools are missing: {error}")
        return session

    def _server_toolsets(self, root: Path, paths: WorldPaths) -> tuple[McpToolset, ...]:
        if not self._servers:
            return ()
        shelf = Shelf(self.home.root)
        roles = shelf.annotations()
        return tuple(
            McpToolset(
                spec, workspace=root, pins=shelf.pins, paths=paths, annotations=roles, clock=self._clock
            )
            for spec in self._servers
        )

    def _policy(self, policy: Policy | str | None) -> Policy:
        if policy is None or isinstance(policy, str):
            # By its full path, so that it is the same policy from whatever folder the session is taken up.
            return load_policy(_absolute(policy or self.settings.policy), search=(self.home.policies,))
        return policy

    def _model(self, model: Model | str | None) -> Model:
        if model is not None and not isinstance(model, str):
            return model
        asking = msgspec.structs.replace(self.settings.asking, model=self.settings.model or "")
        name = model or resolve_model(os.environ, asking)
        if name is None:
            raise ModelMissing(
                "no model is configured: set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or start a local server",
                hint="choose one with --model provider:name, or see a whole session without any: holdfast demo",
            )
        return open_model(name, settings=asking)


def _handed_out(servers: Sequence[ServerSpec]) -> tuple[str, ...]:
    """Every secret we hand out ourselves: keys of providers, and what the entries of servers name."""
    named = (one for spec in servers for one in secrets_of(spec, os.environ))
    return (*secrets(os.environ), *named)


def _redactor(servers: Sequence[ServerSpec]) -> Redactor:
    return Redactor(*(secret for secret in _handed_out(servers) if len(secret) >= SHORTEST_SECRET))


async def _record_changes(
    journal: Journal, status: Status, given: Policy | str | None, policy: Policy, model: Model | None
) -> None:
    """Put another policy or another model on the record, so that the session keeps it."""
    reference = _absolute(given) if isinstance(given, str) else policy.name if given is not None else ""
    changed = SessionReconfigured(
        policy=reference if reference != status.policy else "",
        policy_digest=policy.digest if reference and reference != status.policy else "",
        model=model.name if model is not None and model.name != status.model else "",
    )
    if changed.policy or changed.model:
        await journal.append(changed)


def _absolute(policy: str) -> str:
    """A policy's file is remembered by its full path; a name stays a name."""
    return str(Path(policy).resolve()) if Path(policy).is_file() else policy


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
