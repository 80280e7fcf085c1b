"""Building a session from its parts. `open` decides which parts a session on disk has; tests pass parts in memory."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import msgspec

from holdfast.agent import (
    CodeRun,
    Conversation,
    FolderInstructions,
    ModelStep,
    ReadFolder,
    SessionGuests,
    Turn,
)
from holdfast.commands import PYTHON_TOOL, OpenSandbox, SandboxStatus
from holdfast.core import PERSON, Clock, Paths, SessionId, Toolset, Value
from holdfast.core.events import ProposalsCommitted
from holdfast.gate import (
    NET_CONNECT,
    ApprovalFiles,
    AuditFile,
    Checkpoint,
    ControlRequests,
    Gate,
    GateSettings,
    OutputFilter,
    SavedGrants,
    SharedFileLabels,
    TreeBudget,
    audit_view,
    own_endpoints,
)
from holdfast.models import Model, ModelToolset
from holdfast.policy import OwnEndpoints, Policy, SessionFacts
from holdfast.session.approver import Approver
from holdfast.session.commands.interpreters import SessionInterpreters
from holdfast.session.commands.session_commands import SessionCommands
from holdfast.session.restore_points import TurnRestorePoints, open_restore_points
from holdfast.session.session import Session
from holdfast.session.settings import Settings
from holdfast.session.staged_changes import already_committed, restage
from holdfast.session.status import Status
from holdfast.session.tools import PersonToolset, ViewToolset, as_json
from holdfast.store import Home, Journal, Redactor, Store
from holdfast.world import EffectWriter, StagedWorld, World, WorldToolset


class SessionPaths(Value, gc=True):
    """Where a session is stored on disk."""

    home: Home
    root: Path
    """The workspace."""
    view: World
    """Where an engine that works on a folder does its work: a copy, whose changes are judged afterwards."""


class SessionParts(Value, gc=True):
    """Everything a session is made of; each part may be an in-memory implementation."""

    journal: Journal
    store: Store
    staged: StagedWorld
    """The workspace with what is staged over it, as the engine, the gate and the person see it."""
    paths: Paths
    policy: Policy
    model: Model | None
    guests: SessionGuests
    settings: Settings
    clock: Clock
    toolsets: Sequence[Toolset] = ()
    """Tools that act outside the workspace."""
    language: Sequence[Toolset] = ()
    """Features of Lisp that a policy may forbid."""
    redactor: Redactor = msgspec.field(default_factory=Redactor)
    """Removes secrets from what the guest receives."""
    tree: TreeBudget | None = None
    """The budget that it shares with its forks."""
    approver: Approver | None = None
    open_sandbox: OpenSandbox | None = None
    """Opens the sandbox for programs; None if none works here, and then there are no `shell.*` tools."""
    sandbox_status: SandboxStatus = msgspec.field(default_factory=lambda: SandboxStatus(tier="none"))
    interpreters: SessionInterpreters = msgspec.field(default_factory=SessionInterpreters)
    """Starts the project's Python for code, once the session has its programs."""
    can_ask: bool = True
    instructions: str = ""
    """Added to the model's system prompt."""
    instruction_files: tuple[str, ...] = ()
    """The files of the project that are part of the instructions."""
    instruction_digests: tuple[str, ...] = ()
    """Of their contents."""
    folder_instructions: ReadFolder = lambda _: None
    """Reads those of a folder below the workspace's top."""
    disk: SessionPaths | None = None
    """None for a session in memory."""
    travels: bool = False
    """Whether other machines get the workspace from its restore points, so that every call that changes files makes one."""
    closers: Sequence[Callable[[], Awaitable[None]]] = ()
    """Closed together with the session."""
    on_close: Callable[[SessionId], None] = lambda _: None


async def build_session(parts: SessionParts) -> Session:
    """Build a live session; its staged changes are rebuilt from the journal."""
    journal = parts.journal
    await restage(parts.staged, journal, parts.store)
    await _record_lost_commit(parts.staged, journal, parts.store)
    status, conversation = Status(journal), Conversation(journal)
    commands = _commands(parts)
    gate = _gate(
        parts,
        status,
        commands,
        saved_grants=await _saved_grants(parts),
        commit=lambda: session.commit(),
        checkpoint=lambda turn: points.checkpoint(turn),
    )
    # Closed in reverse order: the lease is released when nothing can write any more.
    resources = AsyncExitStack()
    resources.callback(parts.on_close, journal.session)
    resources.push_async_callback(journal.release)
    for close in parts.closers:
        resources.push_async_callback(close)
    resources.push_async_callback(parts.guests.close)
    if commands is not None:
        resources.push_async_callback(commands.close)
    points = await _open_restore_points(parts, resources)
    await _publish(parts, gate, resources)
    model_step = ModelStep(
        conversation=conversation,
        gate=gate,
        model=parts.model,
        acts_with=parts.settings.acts_with,
        language=lambda: parts.guests.dialect,
        hidden_tools=_language_tools(parts) | _ENGINE_TOOLS,
        max_tokens=parts.settings.model_requests.max_tokens,
        auto_compact=parts.settings.auto_compact,
        max_history_messages=parts.settings.max_history_messages,
        instructions=parts.instructions,
        load_blob=parts.store.blob,
    )
    session = Session(
        journal=journal,
        conversation=conversation,
        status=status,
        gate=gate,
        model_step=model_step,
        turn=_turn(parts, conversation, gate, model_step),
        staged=parts.staged,
        store=parts.store,
        restore_points=points,
        resources=resources,
        commands=commands,
    )
    session.approver = parts.approver
    session.project_instructions = parts.instruction_files
    return session


def _commands(parts: SessionParts) -> SessionCommands | None:
    """The programs of the session; None where no sandbox works, or a weaker one than the settings want."""
    wanted = parts.settings.shell.enabled
    tier = parts.sandbox_status.tier
    if (
        parts.open_sandbox is None
        or wanted is False
        or tier == "none"
        or (tier != "full" and wanted == "auto")
    ):
        return None
    return SessionCommands(
        open=parts.open_sandbox,
        status=parts.sandbox_status,
        journal=parts.journal,
        store=parts.store,
        staged=parts.staged,
        redactor=parts.redactor,
        settings=parts.settings.shell,
        has_network=parts.policy.could_allow(NET_CONNECT),
        workspace=parts.disk.root if parts.disk is not None else None,
        state=parts.disk.home.session_folder(parts.journal.session) if parts.disk is not None else None,
        interpreters=parts.interpreters,
        own_endpoints=_own_endpoints(parts),
    )


def _own_endpoints(parts: SessionParts) -> OwnEndpoints:
    return partial(own_endpoints, parts.disk.home) if parts.disk is not None else tuple


def _gate(
    parts: SessionParts,
    status: Status,
    commands: SessionCommands | None,
    *,
    saved_grants: SavedGrants | None,
    commit: Callable[[], Awaitable[tuple[str, ...]]],
    checkpoint: Checkpoint,
) -> Gate:
    """The gate, with the tools that every session has and the session's own."""
    own: list[Toolset] = [
        WorldToolset(
            parts.staged.base,
            parts.staged,
            keep=parts.store.put_blob,
            max_read_bytes=parts.settings.code.value_bytes,
        ),
        PersonToolset(lambda call: gate.escalations.response_to(call)),
        ViewToolset(
            id=parts.journal.session,
            status=status,
            gate=lambda: gate,
            staged=parts.staged,
            audit=lambda: as_json(audit_view(parts.journal.recorded)),
            commit=commit,
        ),
    ]
    if parts.model is not None:
        own.append(ModelToolset(parts.model))
    if commands is not None:
        own.append(commands.toolset)
        if commands.git is not None:
            own.append(commands.git)
    settings = parts.settings
    gate = Gate(
        journal=parts.journal,
        policy=parts.policy,
        toolsets=[*own, *parts.language, *parts.toolsets],
        paths=parts.paths,
        clock=parts.clock,
        turn_limits=settings.turn_budget,
        tree=parts.tree,
        saved_grants=saved_grants,
        checkpoint=checkpoint if parts.travels else None,
        file_labels=SharedFileLabels(parts.disk.home.file_labels) if parts.disk is not None else None,
        instruction_digests=parts.instruction_digests,
        control_requests=ControlRequests(parts.disk.home.control_requests(parts.journal.session))
        if parts.disk is not None
        else None,
        settings=GateSettings(
            call_seconds=settings.call_seconds,
            escalation_seconds=settings.escalation_seconds,
            max_argument_bytes=settings.code.value_bytes,
            can_ask=parts.can_ask,
        ),
        output_filter=OutputFilter(max_result_bytes=settings.code.value_bytes, redactor=parts.redactor),
        fetch_blob=parts.store.blob,
        effect_writer=EffectWriter(parts.staged),
        keep_blob=parts.store.put_blob,
        facts=lambda: commands.facts if commands is not None else SessionFacts(),
        own_endpoints=_own_endpoints(parts),
    )
    if commands is not None:
        commands.connect(gate)
    return gate


async def _saved_grants(parts: SessionParts) -> SavedGrants | None:
    if parts.disk is None:
        return None
    saved = SavedGrants.of(parts.disk.home, parts.store)
    await saved.refresh()
    saved.load()  # report a damaged document at the start
    return saved


def _turn(parts: SessionParts, conversation: Conversation, gate: Gate, model_step: ModelStep) -> Turn:
    code = CodeRun(
        journal=parts.journal,
        conversation=conversation,
        gate=gate,
        guests=parts.guests,
        language_tools=_language_tools(parts),
        engine_tools=_ENGINE_TOOLS,
        fetch_blob=parts.store.blob,
        clock=parts.clock,
        limits=parts.settings.code,
        view=parts.disk.view if parts.disk is not None else None,
    )
    return Turn(
        journal=parts.journal,
        conversation=conversation,
        gate=gate,
        model_step=model_step,
        code=code,
        clock=parts.clock,
        proposals=parts.staged.staged_paths,
        folders=FolderInstructions(parts.journal, read=parts.folder_instructions),
    )


_ENGINE_TOOLS = frozenset({PYTHON_TOOL.name})
"""Calls that an engine makes for the code it runs. Nobody else is offered them."""


def _language_tools(parts: SessionParts) -> frozenset[str]:
    return frozenset(tool.name for toolset in parts.language for tool in toolset.tools())


async def _publish(parts: SessionParts, gate: Gate, resources: AsyncExitStack) -> None:
    """Publish the audit file and the approval files in the session's folder."""
    if parts.disk is None:
        return
    home, journal = parts.disk.home, parts.journal
    home.prepare_session(journal.session)
    AuditFile(home.audit(journal.session)).attach(journal)
    approval_files = ApprovalFiles(home.escalations(journal.session), gate=gate, journal=journal)
    await approval_files.open()
    resources.push_async_callback(approval_files.close)


async def _open_restore_points(parts: SessionParts, resources: AsyncExitStack) -> TurnRestorePoints:
    points = None
    if parts.disk is not None:
        points = await open_restore_points(
            parts.disk.root,
            journal=parts.journal,
            store=parts.store,
            settings=parts.settings,
            home=parts.disk.home,
            travels=parts.travels,
        )
    if points is not None:
        resources.callback(points.save)
    return TurnRestorePoints(parts.journal, points, travels=parts.travels)


async def _record_lost_commit(staged: StagedWorld, journal: Journal, store: Store) -> None:
    """Record a commit that was made just before the process died, so that it is not mistaken for a conflict."""
    committed = already_committed(staged, journal.recorded)
    if committed:
        if still_staged := [change.path for change in committed if change.path in staged.staged_paths()]:
            staged.reject(still_staged)
        changes = tuple(msgspec.structs.replace(change, is_staged=False) for change in committed)
        await journal.append(ProposalsCommitted(changes=changes, principal=PERSON))
        await restage(staged, journal, store)  # of a file that was committed in part, the rest stays staged
