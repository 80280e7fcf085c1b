"""A gate without an agent of ours: for whoever has a model and a loop of its own, and is to be kept all the same."""

import fcntl
import os
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

from holdfast.app.resources import SharedResources, known_secrets
from holdfast.core import EXTERNAL, check_session_id
from holdfast.core.errors import InvalidInput, SessionExists
from holdfast.core.events import SessionOpened
from holdfast.gate import ApprovalFiles, ControlRequests, Gate, GateSettings, OutputFilter
from holdfast.policy import narrowed_by_project
from holdfast.session import ExternalAgentSession, ResolvedOptions
from holdfast.store import Journal, chosen_name
from holdfast.world import WorldPaths


@asynccontextmanager
async def open_external_gate(
    resources: SharedResources,
    resolved: ResolvedOptions,
    *,
    folder: Path,
    transport: str,
    description: str,
    session: str | None,
    name: str | None,
    settings: GateSettings | None,
    secrets: Sequence[str],
    escalations: Path | None,
) -> AsyncIterator[ExternalAgentSession]:
    """The gate over a journal of its own, answered by files; `Runtime.gate` says what the arguments mean."""
    opened = SessionOpened(
        principal=EXTERNAL,
        folder=os.getcwd(),
        workspace=str(folder),
        policy=resolved.policy_name,
        policy_digest=resolved.policy.digest,
        model="",
        name=chosen_name(name) if name is not None else None,
        description=description,
    )
    async with AsyncExitStack() as stack:
        if escalations is not None:
            stack.enter_context(_exclusive_folder(escalations))
        journal = await _open_journal(resources, opened, session)
        stack.push_async_callback(journal.release)
        gate = Gate(
            journal=journal,
            policy=narrowed_by_project(resolved.policy, folder),
            toolsets=resolved.toolsets,
            paths=WorldPaths(folder, protected=(resources.home.root,), guest_root=None),
            clock=resources.clock,
            control_requests=ControlRequests(resources.home.inbox(journal.session)),
            settings=settings,
            output_filter=OutputFilter(
                secrets=(*known_secrets(resources.servers, resources.settings.asking), *secrets)
            ),
        )
        external = ExternalAgentSession(
            gate, journal, clock=resources.clock, description=description, transport=transport
        )
        if escalations is None:
            resources.home.prepare_session(journal.session)
        folder_of_requests = escalations or resources.home.escalations(journal.session)
        approval_files = ApprovalFiles(folder_of_requests, gate=gate, journal=journal)
        await approval_files.open()
        stack.push_async_callback(approval_files.close)
        yield external


@contextmanager
def _exclusive_folder(folder_of_requests: Path) -> Iterator[None]:
    """One gate in a folder of requests at a time: the next would sweep away what the first has put there. Raises InvalidInput."""
    folder_of_requests.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(folder_of_requests, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InvalidInput(
                f"another process asks in the folder {str(folder_of_requests)!r}",
                hint="give each process an ESCALATION_DIR of its own",
            ) from None
        yield
    finally:
        os.close(descriptor)


async def _open_journal(resources: SharedResources, opened: SessionOpened, session: str | None) -> Journal:
    """The journal of the session, begun where it is not there yet."""
    if session is None:
        return await resources.store.create(opened)
    try:
        return await resources.store.create(opened, session=check_session_id(session))
    except SessionExists:
        return await resources.store.open(check_session_id(session))
