"""The gate for an external agent: no model, no guest and no agent loop of ours, only the gate over a journal."""

import fcntl
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

from holdfast.core import EXTERNAL, Toolset, check_session_id
from holdfast.core.errors import InvalidInput, SessionExists
from holdfast.core.events import SessionOpened
from holdfast.gate import (
    ApprovalFiles,
    ControlRequests,
    Gate,
    GateSettings,
    OutputFilter,
    own_endpoints,
    record_added_folders,
)
from holdfast.policy import Policy, SessionFacts, narrowed_by_project, policy_files
from holdfast.session.commands.external_shell import ExternalShell, shell_status
from holdfast.session.external_agent import ExternalAgentSession
from holdfast.session.open import resolve
from holdfast.session.resources import SharedResources
from holdfast.store import MIN_SECRET_LENGTH, Journal, chosen_name
from holdfast.world import WorldPaths


@asynccontextmanager
async def open_external_gate(
    shared: SharedResources,
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
) -> AsyncIterator[ExternalAgentSession]:
    """The gate for an external agent: whatever it does is recorded in a session like any other.

    The session is new, or the one with this id; raises `SessionHeld` while another process holds it. A turn starts with
    `ExternalAgentSession.begin`, or with a call after a pause. The agent works outside our sandbox: our data directory is
    protected even inside the workspace, and so are its policy and `closed_files`. `secrets` are redacted. Escalations are answered by files in the session's folder,
    or in `escalations`. With `has_shell` the agent can run programs, whose changes are staged in the session; where no
    sandbox works, it has no `shell.*` tools.
    """
    resolved = resolve(shared, {"policy": policy, "toolsets": toolsets, "needs_model": False, "dirs": dirs})
    opened = SessionOpened(
        principal=EXTERNAL,
        folder=os.getcwd(),
        workspace=str(workspace),
        policy=resolved.policy_name,
        policy_digest=resolved.policy.digest,
        model="",
        name=chosen_name(name) if name is not None else None,
        description=description,
    )
    for secret in secrets:
        if len(secret) >= MIN_SECRET_LENGTH:
            shared.redactor.add(secret)
    async with AsyncExitStack() as stack:
        if escalations is not None:
            stack.enter_context(_exclusive_folder(escalations))
        journal = await _open_journal(shared, opened, session)
        stack.push_async_callback(journal.release)
        await record_added_folders(journal, resolved.dirs, home=shared.home.root, clock=shared.clock)
        narrowed = narrowed_by_project(resolved.policy, workspace)
        shell = None
        if has_shell and (status := await shell_status(shared)).tier != "none":
            shell = await ExternalShell.open(
                shared, journal, workspace=workspace, policy=narrowed, status=status
            )
            stack.push_async_callback(shell.commands.close)
        gate = Gate(
            journal=journal,
            policy=narrowed,
            toolsets=(*(shell.toolsets if shell is not None else ()), *resolved.toolsets),
            paths=WorldPaths(
                workspace,
                protected=(shared.home.root,),
                closed_files=(*policy_files(resolved.policy_name), *closed_files),
                guest_root=None,
            ),
            clock=shared.clock,
            control_requests=ControlRequests(shared.home.control_requests(journal.session)),
            settings=settings,
            output_filter=OutputFilter(redactor=shared.redactor),
            fetch_blob=shared.store.blob,
            effect_writer=shell.writer if shell is not None else None,
            keep_blob=shared.store.put_blob if shell is not None else None,
            facts=lambda: shell.commands.facts if shell is not None else SessionFacts(),
            own_endpoints=partial(own_endpoints, shared.home),
        )
        if shell is not None:
            shell.commands.connect(gate)
        external = ExternalAgentSession(
            gate,
            journal,
            clock=shared.clock,
            description=description,
            transport=transport,
            hidden_tools=shell.hidden_tools if shell is not None else frozenset(),
        )
        if escalations is None:
            shared.home.prepare_session(journal.session)
        folder = escalations or shared.home.escalations(journal.session)
        approval_files = ApprovalFiles(folder, gate=gate, journal=journal)
        await approval_files.open()
        stack.push_async_callback(approval_files.close)
        yield external


@contextmanager
def _exclusive_folder(folder: Path) -> Iterator[None]:
    """Lock a folder of requests: a second gate would remove the requests of the first. Raises InvalidInput."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidInput(
                f"another process uses the folder {str(folder)!r} for its requests",
                hint="give each process its own ESCALATION_DIR",
            ) from None
        yield
    finally:
        os.close(descriptor)


async def _open_journal(shared: SharedResources, opened: SessionOpened, session: str | None) -> Journal:
    """The journal of the session; created if it does not exist."""
    if session is None:
        return await shared.store.create(opened)
    try:
        return await shared.store.create(opened, session=check_session_id(session))
    except SessionExists:
        return await shared.store.open(check_session_id(session))
