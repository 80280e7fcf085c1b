"""The ground of one home: the store, engines and servers that its sessions stand on. A session's parts are made here.

What we hand out and must never write down: keys of providers, and what the entries of servers name.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.core import Clock, SessionId
from holdfast.gate import TreeBudget
from holdfast.guests import Engines
from holdfast.mcp import McpFiles, McpToolset, ServerSpec, secrets_of
from holdfast.models import Model, ModelSettings, api_key_of, key_variables, secrets
from holdfast.policy import narrowed_by_project
from holdfast.session import ResolvedOptions, SessionParts, SessionPaths, Settings, workspace_of
from holdfast.store import SHORTEST_SECRET, Home, Journal, Redactor, Store, private_folder
from holdfast.world import (
    FolderWorld,
    Quota,
    RestorePoints,
    StagedWorld,
    UndoJournal,
    WorldPaths,
    reopen_folder,
)


def known_secrets(
    servers: Sequence[ServerSpec], asking: ModelSettings, model: Model | None = None
) -> tuple[str, ...]:
    """Every secret we hand out ourselves, the key of an open model included: it may come from a keyring."""
    named = (one for spec in servers for one in secrets_of(spec, os.environ))
    return (*secrets(os.environ, asking), *named, *_key(model))


def redactor(servers: Sequence[ServerSpec], asking: ModelSettings) -> Redactor:
    """Takes them out of whatever is written."""
    return Redactor(*(secret for secret in known_secrets(servers, asking) if len(secret) >= SHORTEST_SECRET))


def learn_key(redact: Redactor, model: Model | None) -> None:
    """From here on the key of this model is taken out too."""
    for key in _key(model):
        redact.add(key)


def _key(model: Model | None) -> tuple[str, ...]:
    key = api_key_of(model) or ""
    return (key,) if len(key) >= SHORTEST_SECRET else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedResources:
    """What the sessions of one home share. It is handed on, never looked up."""

    home: Home
    settings: Settings
    store: Store
    engines: Engines
    clock: Clock
    servers: Sequence[ServerSpec] = ()
    redact: Redactor = field(default_factory=Redactor)
    """Takes secrets out of what the store writes; it learns the key of each model that is opened."""

    def parts(
        self,
        journal: Journal,
        resolved: ResolvedOptions,
        *,
        on_close: Callable[[SessionId], None],
        tree: TreeBudget | None = None,
    ) -> tuple[SessionParts, tuple[McpToolset, ...]]:
        """What a session is joined from, and the servers among it, which are not started yet."""
        own = self.home.prepare_session(journal.session)
        root = reopen_folder(Path(workspace_of(journal.recorded) or self.home.workspace(journal.session)))
        view = own / "view"
        view.mkdir(mode=0o700, exist_ok=True)
        quota = Quota(bytes=self.settings.workspace_bytes, files=self.settings.workspace_files)
        world, undo = FolderWorld(root, quota=quota), UndoJournal(own)
        undo.recover(world)
        staged = StagedWorld(world, undo=undo)
        paths = WorldPaths(root, protected=(self.home.root,))
        servers = self._toolsets(root, paths)
        policy = narrowed_by_project(resolved.policy, root)
        sandbox = resolved.sandbox_under(policy)
        parts = SessionParts(
            journal=journal,
            store=self.store,
            staged=staged,
            paths=paths,
            policy=policy,
            model=resolved.model,
            guest=self.engines.guest(sandbox, workspace=root, view=view, staged=staged.staged_contents),
            settings=self.settings,
            clock=self.clock,
            toolsets=[*resolved.toolsets, *servers],
            language=self.engines.toolsets(sandbox),
            secrets=known_secrets(self.servers, self.settings.asking, resolved.model),
            tree=tree,
            approver=resolved.approver,
            can_ask=resolved.can_ask,
            place=SessionPaths(home=self.home, root=root, view=FolderWorld(view)),
            closers=[*resolved.closers, *(server.close for server in servers)],
            on_close=on_close,
        )
        return parts, servers

    async def restore_files(self, session: SessionId, manifest: str) -> None:
        """Fill a session's own folder with the files of a restore point."""
        root = private_folder(self.home.workspace(session))
        points = RestorePoints(root, store=self.store, cache=self.home.signs(session))
        await points.fill(manifest)
        points.save()

    def _toolsets(self, root: Path, paths: WorldPaths) -> tuple[McpToolset, ...]:
        if not self.servers:
            return ()
        mcp_files = McpFiles(self.home.root)
        roles = mcp_files.annotations()
        return tuple(
            McpToolset(
                spec,
                workspace=root,
                pins=mcp_files.pins,
                paths=paths,
                annotations=roles,
                keys=key_variables(self.settings.asking),
                clock=self.clock,
            )
            for spec in self.servers
        )
