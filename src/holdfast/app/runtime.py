"""The runtime of one home: sessions begun, taken up, forked, written to a file and read from one.

The host: which sessions are live in this process, and how many may be.
"""

import os
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Unpack

import msgspec

from holdfast.app.external_gate import open_external_gate
from holdfast.app.resources import SharedResources, learn_key, redactor
from holdfast.core import PERSON, Clock, Limits, SessionId, SystemClock, Toolset, check_session_id, pluralize
from holdfast.core.errors import InvalidInput, SessionNotReady
from holdfast.core.events import RestorePointMade, SessionOpened
from holdfast.core.projection import ReplayedHistory
from holdfast.gate import GateSettings, open_tree_budget
from holdfast.guests import Engines, Sandbox
from holdfast.mcp import ServerSpec, start_servers
from holdfast.policy import Policy
from holdfast.session import (
    ExternalAgentSession,
    ResolvedOptions,
    Session,
    SessionOptions,
    Settings,
    Status,
    build_session,
    last_point,
    plan_fork,
    record_changes,
    resolve_options,
)
from holdfast.store import Home, Journal, SqliteStore, Store, chosen_name, export_session, import_session
from holdfast.world import open_folder


class LiveSessions:
    """A registry of live sessions. Sessions share nothing through it."""

    def __init__(self, *, max_sessions: int = 10_000) -> None:
        self._max_sessions = max_sessions
        self._sessions: dict[SessionId, Session] = {}

    def add(self, session: Session) -> None:
        """Take a session in. Raises SessionNotReady where there is no room."""
        if len(self._sessions) >= self._max_sessions:
            raise SessionNotReady(
                f"no more than {pluralize(self._max_sessions, 'session')} may be live at once",
                hint="close one first",
            )
        self._sessions[session.id] = session

    def remove(self, session: SessionId) -> None:
        """Forget a session that was closed."""
        self._sessions.pop(session, None)

    def all(self) -> tuple[Session, ...]:
        """Every live session, in the order it came."""
        return tuple(self._sessions.values())

    async def close(self) -> None:
        """Close every live session."""
        for session in self.all():
            await session.close()


class Runtime:
    """A store, an engine and the sessions that live on them. One a process is enough."""

    def __init__(self, resources: SharedResources) -> None:
        self._resources = resources
        self.home = resources.home
        self.settings = resources.settings
        self.store = resources.store
        self.live_sessions = LiveSessions()

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
        settings = settings or Settings()
        redact = redactor(servers, settings.asking)
        return cls(
            SharedResources(
                home=place,
                settings=settings,
                store=store or await SqliteStore.start(place, clock=clock, redact=redact),
                engines=engines or Engines(key=place.key(), cache=place.cache),
                clock=clock,
                servers=tuple(servers),
                redact=redact,
            )
        )

    async def close(self) -> None:
        """Close every session, then the engine and the store. Idempotent."""
        await self.live_sessions.close()
        await self._resources.engines.close()
        await self.store.close()

    async def create(
        self,
        *,
        workspace: str | Path | None = None,
        name: str | None = None,
        limits: Limits | None = None,
        session: str | None = None,
        **options: Unpack[SessionOptions],
    ) -> Session:
        """A new session. Without a workspace it gets a folder of its own."""
        folder = open_folder(Path(workspace), self.home.root) if workspace is not None else None
        resolved = self._resolve(options)
        opened = SessionOpened(
            principal=PERSON,
            folder=os.getcwd(),
            workspace=str(folder) if folder is not None else "",
            policy=resolved.policy_name,
            policy_digest=resolved.policy.digest,
            model=resolved.model_name,
            limits=limits or self.settings.budget,
            name=chosen_name(name) if name is not None else None,
        )
        journal = await self.store.create(
            opened, session=check_session_id(session) if session is not None else None
        )
        return await self._open(journal, resolved)

    async def resume(self, reference: str, **options: Unpack[SessionOptions]) -> Session:
        """Take up a session by id, prefix or name, with the policy and the model it had unless others are given."""
        journal = await self.store.open(await self.store.find(reference))
        try:
            status = Status(ReplayedHistory(journal.recorded))
            # A turn that ran out may be gone on with, or left for something else, elsewhere.
            continues = status.has_open_turn or (status.can_continue and options.get("sandbox") is None)
            resolved = self._resolve(
                options,
                previous_policy=status.policy,
                previous_model=status.model,
                open_run_engine=status.open_run_engine if continues else "",
            )
            await record_changes(journal, status, resolved)
        except BaseException:
            await journal.release()
            raise
        return await self._open(journal, resolved)

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
        **options: Unpack[SessionOptions],
    ) -> Session:
        """A new session that goes on from the end of a turn of another: its chat, files, staged changes, budget and grants.

        It works in a folder of its own, so the two cannot get in each other's way.
        """
        parent = await self.store.find(reference)
        recorded = await self.store.read(parent)
        plan, before = plan_fork(parent, recorded, at)
        resolved = self._resolve(options, previous_policy=before.policy, previous_model=before.model)
        opened = msgspec.structs.replace(
            before,
            folder=os.getcwd(),
            policy=resolved.policy_name,
            policy_digest=resolved.policy.digest,
            model=resolved.model_name or before.model,
            name=chosen_name(name) if name is not None else None,
        )
        journal = await self.store.fork(parent, at=plan.seq, opened=opened)
        try:
            await self._resources.restore_files(journal.session, plan.manifest)
        except BaseException:
            await journal.release()
            raise
        return await self._open(journal, resolved)

    async def snapshot(self, reference: str, path: str | Path) -> None:
        """Write a session into one file, with its history, its files and what is staged. Raises InvalidInput."""
        session = await self.store.find(reference)
        open_session = next((each for each in self.live_sessions.all() if each.id == session), None)
        if open_session is not None:
            await open_session.save_restore_point()
        await export_session(self._sqlite_store(), session, Path(path), now_ms=self._resources.clock.now_ms())

    async def restore(self, path: str | Path, **options: Unpack[SessionOptions]) -> Session:
        """Take up a session from a snapshot of another home, in a folder of its own.

        Grants given there do not hold here, and its policy is the one of this home unless another is chosen.
        """
        session = await import_session(
            self._sqlite_store(), Path(path), now_ms=self._resources.clock.now_ms()
        )
        point = last_point(await self.store.read(session))
        if point is not None and isinstance(point.event, RestorePointMade):
            await self._resources.restore_files(session, point.event.manifest)
        return await self.resume(session, **options)

    def gate(
        self,
        *toolsets: Toolset,
        workspace: Path,
        transport: str,
        description: str,
        policy: Policy | str | None = None,
        session: str | None = None,
        name: str | None = None,
        settings: GateSettings | None = None,
        secrets: Sequence[str] = (),
        escalations: Path | None = None,
    ) -> AbstractAsyncContextManager[ExternalAgentSession]:
        """The gate for an agent that is not ours: no model and no guest, and whatever it does is in a session like any other.

        The session is new, or the one of this id; `SessionHeld` is raised while another process has it. A turn begins
        with `Gatekeeper.begin`, or with a call after a pause. The agent works where it works: our own home is out of its reach even when the workspace
        holds it. `secrets` are taken out of results. Calls that wait for a person are answered by files
        in the session's folder, or in `escalations`.
        """
        return open_external_gate(
            self._resources,
            self._resolve({"policy": policy, "toolsets": toolsets, "needs_model": False}),
            folder=workspace,
            transport=transport,
            description=description,
            session=session,
            name=name,
            settings=settings,
            secrets=secrets,
            escalations=escalations,
        )

    def _resolve(
        self,
        options: SessionOptions,
        *,
        previous_policy: str = "",
        previous_model: str = "",
        open_run_engine: str = "",
    ) -> ResolvedOptions:
        resolved = resolve_options(
            options,
            self.settings,
            policies=self.home.policies,
            weights=self.home.models,
            previous_policy=previous_policy,
            previous_model=previous_model,
            open_run_engine=open_run_engine,
        )
        learn_key(self._resources.redact, resolved.model)
        return resolved

    async def _open(self, journal: Journal, resolved: ResolvedOptions) -> Session:
        """One live session; where it cannot be joined, nothing stays open."""
        try:
            purse = await open_tree_budget(journal, home=self.home, store=self.store)
            parts, servers = self._resources.parts(
                journal, resolved, on_close=self.live_sessions.remove, tree=purse
            )
            session = await build_session(parts)
        except BaseException:
            for close in (*resolved.closers, journal.release):
                await close()
            raise
        self.live_sessions.add(session)
        with session.preparing():
            failed = await start_servers(servers)
        for name, error in failed.items():
            await session.note("server-failed", f"{name} did not start and its tools are missing: {error}")
        return session

    def _sqlite_store(self) -> SqliteStore:
        if not isinstance(self.store, SqliteStore):
            raise InvalidInput("only a store on disk writes and reads snapshots")
        return self.store
