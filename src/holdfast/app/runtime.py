"""The runtime of one data directory: sessions created, resumed, forked, exported and imported."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Unpack

from holdfast.app.resources import compose_resources
from holdfast.core import Clock, Limits, Toolset
from holdfast.gate import GateSettings
from holdfast.guests import Engines, Sandbox
from holdfast.mcp import ServerSpec
from holdfast.policy import Policy
from holdfast.session import (
    ExternalAgentSession,
    Session,
    SessionOptions,
    Settings,
    SharedResources,
    create_session,
    fork_session,
    import_archive,
    open_external_gate,
    resume_session,
)
from holdfast.store import Store


class Runtime:
    """The sessions of one data directory and what they share. One per process is enough."""

    def __init__(self, shared: SharedResources) -> None:
        self._shared = shared
        self.home = shared.home
        self.settings = shared.settings
        self.store = shared.store
        self.live_sessions = shared.live

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
        """Open a data directory and everything below it; close it with `close`."""
        shared = await compose_resources(
            home=home, settings=settings, store=store, engines=engines, clock=clock, servers=servers
        )
        return cls(shared)

    async def close(self) -> None:
        """Close every session, then the engines and the store. Idempotent."""
        await self.live_sessions.close()
        await self._shared.engines.close()
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
        """A new session. Without a workspace it gets its own folder."""
        return await create_session(
            self._shared, options, workspace=workspace, name=name, limits=limits, session=session
        )

    async def resume(self, reference: str, **options: Unpack[SessionOptions]) -> Session:
        """Resume a session by id, prefix or name, with its policy and model unless others are given."""
        return await resume_session(self._shared, reference, options)

    async def sandbox(
        self, session: str | None = None, *, sandbox: Sandbox = "wasi", policy: Policy | str | None = None
    ) -> Session:
        """A session that only runs code, without a model: new, or the one with this id and its files and variables."""
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
        """A new session that continues from the end of a turn: its messages, files, staged changes, budget and grants.

        It works in its own folder, so the two cannot interfere.
        """
        return await fork_session(self._shared, reference, options, at=at, name=name)

    async def snapshot(self, reference: str, path: str | Path) -> None:
        """Write a session with its history, files and staged changes to one file. Raises InvalidInput."""
        session = await self.store.find(reference)
        live = next((each for each in self.live_sessions.all() if each.id == session), None)
        if live is not None:
            await live.save_restore_point()
        await self.store.export_session(session, Path(path), now_ms=self._shared.clock.now_ms())

    async def restore(self, path: str | Path, **options: Unpack[SessionOptions]) -> Session:
        """Open a session from a snapshot of another data directory, in its own folder.

        Its grants do not apply here. Its policy and model are this data directory's unless others are chosen.
        """
        imported = await import_archive(
            self.store, self._shared.home, Path(path), now_ms=self._shared.clock.now_ms()
        )
        return await self.resume(imported.session, **options)

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
        )
