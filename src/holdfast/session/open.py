"""Opening a session: create, resume or fork it, resolve its options, and build it from the shared resources.

`build_session` assembles the parts; this module decides which parts a session on disk has.
"""

import os
import socket
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from holdfast.agent import (
    ProjectInstructions,
    SessionGuests,
    read_folder_instructions,
    read_project_instructions,
)
from holdfast.commands import PYTHON_TOOL, SHELL_TOOLS, CommandSandbox, SandboxStatus
from holdfast.core import PERSON, Limits, Principal, SessionId, check_session_id
from holdfast.core.errors import HoldfastError, SessionNotReady
from holdfast.core.events import SessionOpened
from holdfast.core.projection import ReplayedHistory
from holdfast.gate import ControlRequests, open_tree_budget, record_added_folders
from holdfast.guests import Guest
from holdfast.models import api_key_of, key_variables
from holdfast.policy import Policy, narrowed_by_project, policy_files
from holdfast.session.branches.rewind_fork import plan_fork
from holdfast.session.build import SessionParts, SessionPaths, build_session
from holdfast.session.commands.interpreters import SessionInterpreters
from holdfast.session.options import (
    ResolvedOptions,
    SessionOptions,
    check_may_run,
    check_sandbox,
    record_changes,
    resolve_options,
)
from holdfast.session.resources import SharedResources
from holdfast.session.restore_points import restore_limits
from holdfast.session.session import Session
from holdfast.session.settings import Settings
from holdfast.session.shared.policies import keep_policy, recorded_policy
from holdfast.session.shared.travelling_folder import TravellingFolder, is_own_folder, is_shared
from holdfast.session.status import Status, workspace_of
from holdfast.store import (
    HOST_QUEUE,
    MIN_SECRET_LENGTH,
    Journal,
    chosen_name,
    private_folder,
    shortened_note,
)
from holdfast.world import (
    FolderWorld,
    Quota,
    RestorePoints,
    StagedWorld,
    TrustedFolders,
    UndoJournal,
    WorldPaths,
    open_folder,
    reopen_folder,
)

if TYPE_CHECKING:
    from holdfast.mcp import McpToolset


async def create_session(
    shared: SharedResources,
    options: SessionOptions,
    *,
    workspace: str | Path | None = None,
    name: str | None = None,
    limits: Limits | None = None,
    session: str | None = None,
    description: str = "",
    principal: Principal = PERSON,
) -> Session:
    """A new session. Without a workspace it gets its own folder."""
    shared.live.check_room()
    folder = open_folder(Path(workspace), shared.home.root) if workspace is not None else None
    resolved = resolve(shared, options, owns_folder=folder is None)
    if is_shared(shared.store):
        await keep_policy(shared.store, resolved.policy)
    queue = host_queue() if folder is not None and is_shared(shared.store) else ""
    opened = SessionOpened(
        principal=principal,
        folder=os.getcwd(),
        workspace=str(folder) if folder is not None else "",
        queue=queue,
        policy=resolved.policy_name,
        policy_digest=resolved.policy.digest,
        model=resolved.model_name,
        sandbox=resolved.sandbox,
        limits=limits or shared.settings.budget,
        name=chosen_name(name) if name is not None else None,
        description=description,
    )
    id = check_session_id(session) if session is not None else None
    has_files = id is not None and shared.home.session_folder(id).exists()
    journal = await shared.store.create(opened, session=id)
    try:
        created = await _open(shared, journal, resolved, note=shortened_note(name))
        if queue:
            await created.note(
                "host-pinned", f"it works in a folder of this machine, so only workers here run it ({queue})"
            )
        return created
    except BaseException:
        # Files that were there before the session, such as those of `workspace.create`, are the caller's.
        if not has_files:
            await shared.store.delete(journal.session)
        raise


async def resume_session(shared: SharedResources, reference: str, options: SessionOptions) -> Session:
    """An existing session by id, prefix or name, with its policy and model unless others are given."""
    shared.live.check_room()
    journal = await shared.store.open(await shared.store.find(reference))
    try:
        status = Status(ReplayedHistory(journal.recorded))
        _check_host(journal.session, status)
        owns_folder, recorded = _owns_folder(shared, journal), None
        if is_shared(shared.store) and options.get("policy") is None:
            recorded = await recorded_policy(
                shared.store, status, policies=shared.home.policies, owns_folder=owns_folder
            )
        resolved = resolve(
            shared,
            options,
            previous_policy=status.policy,
            previous_model=status.model,
            previous_sandbox=status.sandbox,
            owns_folder=owns_folder,
            recorded=recorded,
        )
        if is_shared(shared.store) and resolved.policy.digest != status.policy_digest:
            await keep_policy(shared.store, resolved.policy)
        await record_changes(journal, status, resolved, keeps_policy=is_shared(shared.store))
    except BaseException:
        await journal.release()
        raise
    return await _open(shared, journal, resolved)


async def fork_session(
    shared: SharedResources,
    reference: str,
    options: SessionOptions,
    *,
    at: int | None = None,
    name: str | None = None,
    description: str = "",
) -> Session:
    """A new session that continues from the end of a turn of another, in its own folder."""
    shared.live.check_room()
    parent = await shared.store.find(reference)
    plan, before = plan_fork(parent, await shared.store.read(parent), at)
    resolved = resolve(
        shared,
        options,
        previous_policy=before.policy,
        previous_model=before.model,
        previous_sandbox=before.sandbox,
        owns_folder=True,
    )
    opened = msgspec.structs.replace(
        before,
        folder=os.getcwd(),
        policy=resolved.policy_name,
        policy_digest=resolved.policy.digest,
        model=resolved.model_name or before.model,
        sandbox=resolved.sandbox,
        queue="" if before.queue.startswith(HOST_QUEUE) else before.queue,  # a fork has a folder of its own
        name=chosen_name(name) if name is not None else None,
        description=description or before.description,
    )
    if is_shared(shared.store):
        await keep_policy(shared.store, resolved.policy)
    journal = await shared.store.fork(parent, at=plan.seq, opened=opened)
    try:
        await _restore_or_release(shared, journal, plan.manifest)
        return await _open(shared, journal, resolved, note=shortened_note(name))
    except BaseException:
        await shared.store.delete(journal.session)
        raise


async def _restore_or_release(shared: SharedResources, journal: Journal, manifest: str) -> None:
    if is_shared(shared.store):
        return  # its folder is filled when it is opened
    try:
        await _restore_files(shared, journal, manifest)
    except BaseException:
        await journal.release()
        raise


async def _restore_files(shared: SharedResources, journal: Journal, manifest: str) -> None:
    """Fill a session's own folder with the files of a restore point."""
    root = private_folder(shared.home.workspace(journal.session))
    points = RestorePoints(
        root,
        store=shared.store,
        cache=shared.home.stat_cache(journal.session),
        limits=restore_limits(journal.recorded),
    )
    await points.fill(manifest)
    points.save()


def resolve(
    shared: SharedResources,
    options: SessionOptions,
    *,
    previous_policy: str = "",
    previous_model: str = "",
    previous_sandbox: str = "",
    owns_folder: bool = False,
    recorded: Policy | None = None,
) -> ResolvedOptions:
    """The options with every default filled in. From here on the key of the model is redacted."""
    resolved = resolve_options(
        options,
        shared.settings,
        policies=shared.home.policies,
        models_folder=shared.home.models,
        previous_policy=previous_policy,
        previous_model=previous_model,
        previous_sandbox=previous_sandbox,
        owns_folder=owns_folder,
        recorded_policy=recorded,
    )
    key = api_key_of(resolved.model) or ""
    if len(key) >= MIN_SECRET_LENGTH:
        shared.redactor.add(key)
    return resolved


def host_queue() -> str:
    """The queue that only the workers of this machine serve."""
    return f"{HOST_QUEUE}{socket.gethostname()}"


def _check_host(session: SessionId, status: Status) -> None:
    """Raise SessionNotReady if the session works in a folder of another machine: a folder here with the same path is not it."""
    queue = status.queue
    if queue.startswith(HOST_QUEUE) and queue != host_queue():
        host = queue.removeprefix(HOST_QUEUE)
        raise SessionNotReady(
            f"session {session} works in a folder of the machine {host!r}",
            hint=f"open it there, or post to it: holdfast post {session} TEXT",
        )


def _owns_folder(shared: SharedResources, journal: Journal) -> bool:
    """Whether a session works in a folder that only it uses."""
    folder = workspace_of(journal.recorded)
    if is_shared(shared.store):
        return is_own_folder(folder, journal.session)
    return folder in ("", str(shared.home.workspace(journal.session)))


async def _open(
    shared: SharedResources, journal: Journal, resolved: ResolvedOptions, *, note: str | None = None
) -> Session:
    """Build the session and start its servers. If it cannot be built, nothing stays open."""
    try:
        await record_added_folders(journal, resolved.dirs, home=shared.home.root, clock=shared.clock)
        parts, servers = await _session_parts(shared, journal, resolved)
        session = await build_session(parts)
    except BaseException:
        for close in (*resolved.closers, journal.release):
            await close()
        raise
    try:
        shared.live.add(session)
        for _, request in ControlRequests(shared.home.control_requests(session.id)).take():
            # Its sender waited for another process, and has given up.
            await session.note(
                "request-expired", f"{type(request).__name__} was requested, but nobody held the session"
            )
        with session.preparing():
            failed = await _start_servers(servers)
        problems = [
            f"{name} did not start, so its tools are missing: {error}" for name, error in failed.items()
        ]
        for problem in problems:
            await session.note("server-failed", problem)
        session.server_problems = (*problems, *filter(None, map(_denied, servers)))
        if note is not None:
            await session.note("name-shortened", note)
    except BaseException:
        await session.close()
        raise
    return session


async def _session_parts(
    shared: SharedResources, journal: Journal, resolved: ResolvedOptions
) -> tuple[SessionParts, "tuple[McpToolset, ...]"]:
    """The parts of a session on disk, and the servers among them, which are not started yet."""
    home, settings = shared.home, shared.settings
    tree = await open_tree_budget(journal, home=home, store=shared.store)
    own = home.prepare_session(journal.session)
    travelling = None
    if is_shared(shared.store) and _owns_folder(shared, journal):
        travelling = TravellingFolder(home, journal)
        await travelling.open(shared.store)
        root = reopen_folder(travelling.path)
    else:
        root = reopen_folder(Path(workspace_of(journal.recorded) or home.workspace(journal.session)))
    view = own / "view"
    view.mkdir(mode=0o700, exist_ok=True)
    quota = Quota(bytes=settings.workspace_bytes, files=settings.workspace_files)
    world, undo = FolderWorld(root, quota=quota), UndoJournal(own)
    undo.recover(world)
    staged = StagedWorld(world, undo=undo)
    paths = WorldPaths(root, protected=(home.root,), closed_files=policy_files(resolved.policy_name))
    servers = await _server_toolsets(shared, root, paths)
    policy = narrowed_by_project(resolved.policy, root)
    is_trusted = TrustedFolders(home.trusted_folders).trusts(root)
    project = read_project_instructions(root) if is_trusted else ProjectInstructions()

    def create_guest(name: str) -> Guest:
        if resolved.engine is not None and name == resolved.sandbox:
            check_may_run(name, policy)
            return resolved.engine.guest()
        sandbox = check_sandbox(name, policy)
        return shared.engines.guest(
            sandbox,
            workspace=root,
            view=view,
            staged=staged.staged_contents,
            interpreters=interpreters if _may_run_code(sandbox_status, settings, policy) else None,
        )

    async def open_sandbox() -> CommandSandbox:
        state = private_folder(own / "sandbox")
        return await shared.sandboxes.open(Path(root), state=state, settings=settings.shell)

    interpreters, sandbox_status = SessionInterpreters(), await _sandbox_status(shared, policy)
    if resolved.engine is None:
        check_sandbox(resolved.sandbox, policy)
    guests = SessionGuests(resolved.sandbox, create_guest)
    if resolved.is_sandbox_chosen or resolved.model is not None:
        _ = guests.main  # report a missing engine now; a session that is only inspected needs none
    left = [travelling.close] if travelling is not None else []  # closed last, before the lease is released
    parts = SessionParts(
        journal=journal,
        store=shared.store,
        staged=staged,
        paths=paths,
        policy=policy,
        model=resolved.model,
        guests=guests,
        settings=settings,
        clock=shared.clock,
        toolsets=[*resolved.toolsets, *servers],
        language=shared.engines.toolsets("lisp"),
        redactor=shared.redactor,
        open_sandbox=open_sandbox,
        sandbox_status=sandbox_status,
        interpreters=interpreters,
        tree=tree,
        approver=resolved.approver,
        can_ask=resolved.can_ask,
        instructions="\n\n".join(filter(None, (resolved.instructions, project.text))),
        instruction_files=project.files,
        instruction_digests=project.digests,
        folder_instructions=partial(read_folder_instructions, root) if is_trusted else lambda _: None,
        disk=SessionPaths(home=home, root=root, view=FolderWorld(view)),
        travels=travelling is not None,
        closers=[*left, *resolved.closers, *(server.close for server in servers)],
        on_close=shared.live.remove,
    )
    return parts, servers


async def _sandbox_status(shared: SharedResources, policy: Policy) -> SandboxStatus:
    """The sandbox for programs. Where they are switched off, or the policy denies them all, nobody looks for one."""
    is_wanted = shared.settings.shell.enabled is not False and any(map(policy.could_allow, SHELL_TOOLS))
    return await shared.sandboxes.probe() if is_wanted else SandboxStatus(tier="none")


def _may_run_code(status: SandboxStatus, settings: Settings, policy: Policy) -> bool:
    """Whether code may run in the project's Python: in the full sandbox, where the policy allows that."""
    is_allowed = policy.sandboxes is None or "system" in policy.sandboxes
    return (
        is_allowed
        and status.tier == "full"
        and settings.shell.enabled is not False
        and policy.could_allow(PYTHON_TOOL)
    )


async def _start_servers(servers: "tuple[McpToolset, ...]") -> dict[str, HoldfastError]:
    """Start the servers of a session; returns the error of each that failed."""
    if not servers:
        return {}
    from holdfast.mcp import start_servers  # here, because many sessions have no servers

    return await start_servers(servers)


def _denied(server: "McpToolset") -> str:
    """That the agent cannot use a server, because no rule could judge a call to any of its tools; empty if it can."""
    name, tools = server.spec.name, server.tools()
    if not tools or any(tool.roles is not None for tool in tools):
        return ""
    return f"{name}: every call is denied, because its arguments have no roles; holdfast mcp annotate {name} suggests them"


async def _server_toolsets(
    shared: SharedResources, root: Path, paths: WorldPaths
) -> "tuple[McpToolset, ...]":
    if not shared.servers:
        return ()
    from holdfast.mcp import McpFiles, McpToolset, open_pins

    pins = await open_pins(shared.home, shared.store)
    annotations = McpFiles(shared.home.root, pins=pins).annotations()
    return tuple(
        McpToolset(
            spec,
            workspace=root,
            pins=pins,
            paths=paths,
            annotations=annotations,
            keys=key_variables(shared.settings.model_requests),
            clock=shared.clock,
        )
        for spec in shared.servers
    )
