"""The runtime of one data directory: sessions created, resumed, forked, exported and imported."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from holdfast.app.resources import compose_resources
from holdfast.commands import CommandSandboxes
from holdfast.config import project_budget
from holdfast.core import PERSON, Clock, Limits, Principal, Toolset, check_session_id, parse_limits
from holdfast.core.errors import SessionHeld, SessionNotFound
from holdfast.gate import GateSettings
from holdfast.guests import Engines, Sandbox
from holdfast.policy import Policy
from holdfast.session import (
    ControlWatch,
    ExternalAgentSession,
    MergePlan,
    PostedRequestWatch,
    Session,
    SessionOptions,
    Settings,
    SharedResources,
    check_options,
    create_session,
    fork_session,
    import_archive,
    open_external_gate,
    parent_of,
    resume_session,
    view_merge,
)
from holdfast.store import Store, WorkStore, export_signed

if TYPE_CHECKING:
    from holdfast.mcp import ServerSpec


class Runtime:
    """The sessions of one data directory and what they share. One per process is enough."""

    def __init__(self, shared: SharedResources) -> None:
        self._shared = shared
        self.home = shared.home
        self.settings = shared.settings
        self.store = shared.store
        self.sandboxes = shared.sandboxes
        self.live_sessions = shared.live
        self._control = ControlWatch(shared.home, shared.live)
        self.posted_requests = (
            PostedRequestWatch(shared.store, shared.live) if isinstance(shared.store, WorkStore) else None
        )
        """Carries out what other processes post to sessions of a shared store; None for any other store."""

    @classmethod
    async def start(
        cls,
        *,
        home: str | Path | None = None,
        settings: Settings | None = None,
        store: Store | None = None,
        store_url: str | None = None,
        engines: Engines | None = None,
        clock: Clock | None = None,
        servers: "Sequence[ServerSpec] | None" = None,
        max_sessions: int = 10_000,
        sandboxes: CommandSandboxes | None = None,
    ) -> "Runtime":
        """Open a data directory and everything below it; close it with `close`.

        Without `settings` and `servers` it reads config.toml and mcp-servers.json of the data directory, as the command
        line does. Pass `settings=Settings()` and `servers=()` to ignore the files. Raises InvalidConfig. At most
        `max_sessions` sessions are open at once; one more raises SessionNotReady, and is not created. `store_url` names a
        store in PostgreSQL that many machines share; without it `$HOLDFAST_STORE` does, else sessions are in the data directory.
        """
        shared = await compose_resources(
            home=home,
            settings=settings,
            store=store,
            store_url=store_url,
            engines=engines,
            clock=clock,
            servers=servers,
            max_sessions=max_sessions,
            sandboxes=sandboxes,
        )
        runtime = cls(shared)
        runtime._control.open()
        if runtime.posted_requests is not None:
            runtime.posted_requests.open()
        return runtime

    async def close(self) -> None:
        """Close every session, then the engines and the store. Idempotent."""
        await self._control.close()
        if self.posted_requests is not None:
            await self.posted_requests.close()
        await self.live_sessions.close()
        await self._shared.engines.close()
        await self.store.close()

    def get(self, session: str) -> Session | None:
        """The session with this id that is open in this runtime; None if there is none. `resume` opens one."""
        return self.live_sessions.get(session)

    async def create(
        self,
        *,
        workspace: str | Path | None = None,
        name: str | None = None,
        budget: Limits | str | None = None,
        limits: Limits | None = None,
        session: str | None = None,
        description: str = "",
        principal: Principal = PERSON,
        **options: Unpack[SessionOptions],
    ) -> Session:
        """A new session of a person. Without a workspace it gets its own folder.

        `budget` is written as on the command line, such as `"usd=1,tokens=50k"`, or as `Limits`. Without it, the budget of
        the settings applies, narrowed by the project's own config.toml. `limits` is another name for it.
        """
        check_options(options, "Runtime.create")
        return await create_session(
            self._shared,
            options,
            workspace=workspace,
            name=name,
            limits=self._budget(budget if budget is not None else limits, workspace),
            session=session,
            description=description,
            principal=principal,
        )

    async def resume(self, reference: str, **options: Unpack[SessionOptions]) -> Session:
        """Resume a session by id, prefix or name, with its policy and model unless others are given."""
        check_options(options, "Runtime.resume")
        return await resume_session(self._shared, reference, options)

    async def sandbox(
        self,
        session: str | None = None,
        *,
        sandbox: Sandbox = "wasi",
        policy: Policy | str | None = None,
        can_ask: bool = True,
    ) -> Session:
        """A session that only runs code, without a model: new, or the one with this id and its files and variables.

        Where nobody answers questions, pass `can_ask=False`: a call that needs approval, such as one that reads outside the
        session's folder, is then refused at once.
        """
        options: SessionOptions = {
            "sandbox": sandbox,
            "policy": policy,
            "can_ask": can_ask,
            "needs_model": False,
        }
        if session is not None and await self._is_known(session):
            return await self.resume(session, **options)
        return await self.create(session=session, **options)

    async def _is_known(self, session: str) -> bool:
        try:
            await self.store.summary(check_session_id(session))
        except SessionNotFound:
            return False
        return True

    async def fork(
        self,
        reference: str,
        *,
        at: int | None = None,
        name: str | None = None,
        description: str = "",
        **options: Unpack[SessionOptions],
    ) -> Session:
        """A new session that continues from the end of a turn: its messages, files, staged changes, budget and grants.

        It works in its own folder, so the two cannot interfere.
        """
        check_options(options, "Runtime.fork")
        return await fork_session(self._shared, reference, options, at=at, name=name, description=description)

    async def plan_merge(self, fork: str, *paths: str) -> MergePlan:
        """What a merge of a fork would change in the folder of its parent, and what conflicts. Changes nothing."""
        try:
            async with self._fork_and_parent(fork) as (child, parent):
                return await parent.plan_merge(child, *paths)
        except SessionHeld:
            return await view_merge(self.home, self.store, await self.store.find(fork), *paths)

    async def merge(self, fork: str, *paths: str, shown: MergePlan | None = None) -> MergePlan:
        """Commit what a fork changed, or only these paths, to the folder of its parent: all or nothing. Raises CommitConflict.

        With `shown`, the plan that a person approved, only if it is still the same.
        """
        async with self._fork_and_parent(fork) as (child, parent):
            return await parent.merge(child, *paths, shown=shown)

    @asynccontextmanager
    async def _fork_and_parent(self, reference: str) -> AsyncIterator[tuple[Session, Session]]:
        """A fork and its parent. Those that are not open here are opened for the block, without a model."""
        fork = await self.store.find(reference)
        parent = parent_of(fork, await self.store.read(fork)).session
        if parent not in {each.id for each in await self.store.sessions()}:
            raise SessionNotFound(
                f"the parent of this fork, {parent}, was deleted",
                hint=f"copy its files to a folder: holdfast files get {fork} . FOLDER",
            )
        async with AsyncExitStack() as opened:
            sessions: list[Session] = []
            for id in (fork, parent):
                session = self.get(id)
                if session is None:
                    session = await self.resume(id, needs_model=False)
                    opened.push_async_callback(session.close)
                sessions.append(session)
            yield sessions[0], sessions[1]

    async def snapshot(self, reference: str, path: str | Path) -> None:
        """Write a session with its history, files and staged changes to one file. Raises InvalidInput."""
        session = await self.store.find(reference)
        live = self.get(session)
        if live is not None:
            await live.save_restore_point()
        await export_signed(
            self.store, self._shared.home, session, Path(path), now_ms=self._shared.clock.now_ms()
        )

    async def restore(self, path: str | Path, **options: Unpack[SessionOptions]) -> Session:
        """Open a session from a snapshot of another data directory, in its own folder.

        Its grants do not apply here. Its policy and model are this data directory's unless others are chosen, and its budget is
        the stricter one of its own and this data directory's.
        """
        check_options(options, "Runtime.restore")
        imported = await import_archive(
            self.store,
            self._shared.home,
            Path(path),
            now_ms=self._shared.clock.now_ms(),
            limits=self.settings.budget,
        )
        return await self.resume(imported.session, **options)

    def _budget(self, given: Limits | str | None, workspace: str | Path | None) -> Limits:
        if isinstance(given, str):
            return parse_limits(given)
        if isinstance(given, Limits):
            return given
        if given is not None:
            raise TypeError(f"a budget is Limits, or a text such as 'usd=1,tokens=50k', not {given!r:.80}")
        if workspace is None:
            return self.settings.budget
        return project_budget(self.settings.budget, Path(workspace))

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
        dirs: Sequence[str] = (),
        closed_files: Sequence[Path] = (),
        has_shell: bool = False,
    ) -> AbstractAsyncContextManager[ExternalAgentSession]:
        """The gate for an external agent; see `open_external_gate`."""
        return open_external_gate(
            self._shared,
            *toolsets,
            workspace=workspace,
            transport=transport,
            description=description,
            policy=policy,
            session=session,
            name=name,
            settings=settings,
            secrets=secrets,
            escalations=escalations,
            dirs=dirs,
            closed_files=closed_files,
            has_shell=has_shell,
        )
