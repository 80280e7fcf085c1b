"""Joining the parts of one session: the same road, whatever the parts. Which parts they are is decided above."""

import contextlib
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from holdfast.agent import CodeRun, Conversation, Turn
from holdfast.core import PERSON, Clock, Paths, SessionId, Toolset
from holdfast.core.events import Noted, ProposalsCommitted, RestorePointMade
from holdfast.gate import AuditFile, Gate, GateSettings, GrantBook, Rendezvous, Results, audit_view
from holdfast.guests import Guest, GuestLimits
from holdfast.models import Model, ModelToolset
from holdfast.policy import Policy
from holdfast.session.person import PersonToolset
from holdfast.session.rewinding import last_point
from holdfast.session.session import Session
from holdfast.session.settings import Settings
from holdfast.session.staging import made_already, restage, staged_changes
from holdfast.session.status import Status
from holdfast.session.view import ViewToolset, as_json
from holdfast.store import Home, Journal, Store
from holdfast.world import RestorePoints, StagedWorld, UndoJournal, World, WorldToolset

MAX_QUICK_FILES = 5_000
MAX_QUICK_BYTES = 200_000_000
"""Up to here the first restore point takes a moment and not a minute."""


async def assemble(
    *,
    journal: Journal,
    store: Store,
    world: World,
    paths: Paths,
    policy: Policy,
    model: Model | None,
    guest: Guest,
    settings: Settings,
    clock: Clock,
    toolsets: Sequence[Toolset] = (),
    language: Sequence[Toolset] = (),
    secrets: tuple[str, ...] = (),
    can_ask: bool = True,
    home: Home | None = None,
    root: Path | None = None,
    view: World | None = None,
    closers: Sequence[Callable[[], Awaitable[None]]] = (),
    on_close: Callable[[SessionId], None] = lambda _: None,
) -> Session:
    """One live session over these parts; its staged changes are brought back from the journal."""
    # Closed in the opposite order: the lease is given back when nothing can write any more.
    resources = AsyncExitStack()
    resources.callback(on_close, journal.session)
    resources.push_async_callback(journal.release)
    for close in closers:
        resources.push_async_callback(close)
    resources.push_async_callback(guest.close)
    status, conversation = Status(journal), Conversation(journal)
    undo = UndoJournal(home.session_folder(journal.session)) if home is not None else None
    if undo is not None:
        undo.recover(world)
    staged = StagedWorld(world, undo=undo)
    await restage(staged, journal, store)
    await _record_lost_commit(staged, journal)
    own: list[Toolset] = [
        WorldToolset(world, staged, keep=store.put_blob),
        PersonToolset(lambda call: gate.escalations.response_to(call)),
        ViewToolset(
            status=status,
            gate=lambda: gate,
            staged=staged,
            audit=lambda: as_json(audit_view(journal.recorded)),
        ),
    ]
    if model is not None:
        own.append(ModelToolset(model))
    book = GrantBook(home.grants) if home is not None else None
    if book is not None:
        book.grants()  # a damaged one is told at the start
    gate = Gate(
        journal=journal,
        policy=policy,
        toolsets=[*own, *language, *toolsets],
        paths=paths,
        clock=clock,
        turn_limits=settings.turn_budget,
        book=book,
        settings=GateSettings(
            call_seconds=settings.call_seconds,
            escalation_seconds=settings.escalation_seconds,
            can_ask=can_ask,
        ),
        results=Results(secrets=secrets),
    )
    if home is not None:
        home.prepare_session(journal.session)
        AuditFile(home.audit(journal.session)).attach(journal)
        rendezvous = Rendezvous(home.escalations(journal.session), gate=gate, journal=journal)
        await rendezvous.open()
        resources.push_async_callback(rendezvous.close)
    points = await _points(root, journal, store, settings, home)
    if points is not None:
        resources.callback(points.save)
    code = CodeRun(
        journal=journal,
        conversation=conversation,
        gate=gate,
        guest=guest,
        fetch=store.blob,
        clock=clock,
        limits=GuestLimits(),
        view=view,
    )
    turn = Turn(
        journal=journal,
        conversation=conversation,
        gate=gate,
        code=code,
        model=model,
        clock=clock,
        proposals=lambda: tuple(proposal.path for proposal in staged.proposals()),
        mode=settings.mode,
        max_tokens=settings.max_tokens,
        is_compacted_when_full=settings.auto_compact,
        max_history_messages=settings.max_history_messages,
    )
    return Session(
        journal=journal,
        conversation=conversation,
        status=status,
        gate=gate,
        turn=turn,
        workspace=world,
        staged=staged,
        store=store,
        resources=resources,
        points=points,
        has_outside_tools=bool(toolsets),
    )


async def _record_lost_commit(staged: StagedWorld, journal: Journal) -> None:
    """Record a commit that was made just before the process died, so that it is not taken for a conflict."""
    made = made_already(staged, staged_changes(journal.recorded))
    if made:
        waiting = {proposal.path for proposal in staged.proposals()}
        if gone := [change.path for change in made if change.path in waiting]:
            staged.reject(gone)
        changes = tuple(msgspec.structs.replace(change, is_staged=False) for change in made)
        await journal.append(ProposalsCommitted(changes=changes, principal=PERSON))


async def _points(
    root: Path | None, journal: Journal, store: Store, settings: Settings, home: Home | None
) -> RestorePoints | None:
    """Restore points of the workspace, or None where there are none to be made."""
    if root is None or settings.restore_points == "never":
        return None
    last = last_point(journal.recorded)
    if last is None and settings.restore_points == "auto" and _is_large(root):
        text = (
            "this folder is large: turns cannot be gone back to here unless restore_points is set to always"
        )
        await journal.append(Noted(code="no-restore-points", text=text))
        return None
    manifest = last.event.manifest if last is not None and isinstance(last.event, RestorePointMade) else None
    cache = home.cache / "signs" / journal.session if home is not None else None
    return RestorePoints(root, keep=store.put_blob, fetch=store.blob, last=manifest, cache=cache)


def _is_large(root: Path) -> bool:
    """Whether reading every file once would keep a person waiting: a look that stops as soon as it is clear."""
    files = size = 0
    for folder, _, names in os.walk(root):
        for name in names:
            files += 1
            with contextlib.suppress(OSError):
                size += os.lstat(os.path.join(folder, name)).st_size
            if files > MAX_QUICK_FILES or size > MAX_QUICK_BYTES:
                return True
    return False
