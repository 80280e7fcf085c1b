"""The parts of export and import that every store shares: writing the archive file, and the events of an arrival."""

import os
import secrets
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from holdfast.core import PERSON, Error, EscalationId, GrantId
from holdfast.core.errors import InvalidInput
from holdfast.core.events import (
    BudgetRaised,
    CallIntended,
    EscalationAnswered,
    EscalationExpired,
    EscalationOpened,
    Event,
    GrantGiven,
    GrantRevoked,
    Noted,
    RecordedEvent,
    SessionReconfigured,
    SessionRenamed,
    Signer,
    TurnEnded,
)
from holdfast.core.projection import unfinished_turn
from holdfast.store.archive.format import RawEvent, pack
from holdfast.store.contract import ArchiveManifest, Arrival, SignArchive
from holdfast.store.home import sync_folder

_UNFINISHED = Error(
    message="the file was exported before this turn was done, and no turn of another machine goes on here",
    code="imported",
    hint="send it again",
)


def check_target(path: Path) -> None:
    """Raise InvalidInput if the target of an export exists."""
    if os.path.lexists(path):
        raise InvalidInput(f"{str(path)!r} already exists", hint="choose another file, or remove it first")


def write_archive(
    path: Path,
    manifest: ArchiveManifest,
    lines: Iterable[RawEvent],
    blobs: Iterable[tuple[str, bytes | None]],
    sign: SignArchive | None = None,
) -> ArchiveManifest:
    """Write an archive to a new file, completely or not at all. Raises InvalidInput."""
    draft = path.with_name(f".holdfast-{secrets.token_hex(8)}")
    try:
        descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w+b") as file:
            os.fchmod(descriptor, 0o600)
            manifest = pack(file, manifest, lines, blobs, sign)
            file.flush()
            os.fsync(descriptor)
        _publish(draft, path)
        sync_folder(path.parent)
    except OSError as problem:
        raise InvalidInput(
            f"{str(path)!r} cannot be written: {problem.strerror}", hint="choose another location with -o"
        ) from problem
    finally:
        with suppress(OSError):
            draft.unlink()
    return manifest


def arrival_events(
    recorded: Sequence[RecordedEvent],
    arrival: Arrival,
    *,
    old_name: str | None,
    name: str | None,
    signer: Signer = "",
) -> list[Event]:
    """The events that end an import: nothing that the other machine chose, permitted or began goes on here."""
    events = [one.event for one in recorded]
    ending: list[Event] = [GrantRevoked(grant=grant) for grant in _active_grants(events)]
    ending += [EscalationExpired(escalation=id, reason=reason) for id, reason in _questions(events).items()]
    if (turn := unfinished_turn(recorded)) is not None:
        ending.append(TurnEnded(turn=turn, outcome=_UNFINISHED))
    if name != old_name:
        ending.append(SessionRenamed(name=name))
    # The note clears the model, policy and folder of the other machine; what was chosen here follows it.
    ending.append(Noted(code="imported", text="imported from a file; its grants were revoked", signer=signer))
    ending.append(SessionReconfigured(workspace=arrival.workspace, model=arrival.model))
    if arrival.limits is not None:
        ending.append(BudgetRaised(limits=arrival.limits, principal=PERSON, request="import"))
    if arrival.restore_point is not None:
        ending.append(arrival.restore_point)
    return ending


def _publish(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)  # unlike a rename, it never replaces a file that appeared in the meantime
    except PermissionError:  # file systems without hard links, such as FAT
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        draft.replace(path)


def _active_grants(events: Iterable[Event]) -> list[GrantId]:
    active: dict[GrantId, None] = {}
    for event in events:
        if isinstance(event, GrantGiven):
            active[event.grant.id] = None
        elif isinstance(event, GrantRevoked):
            active.pop(event.grant, None)
    return list(active)


def _questions(events: Iterable[Event]) -> dict[EscalationId, str]:
    """Escalations that wait, and approved ones whose call has not been made; each with the reason why it ends."""
    ending: dict[EscalationId, str] = {}
    for event in events:
        match event:
            case EscalationOpened():
                ending[event.escalation.id] = "it was asked in another home"
            case EscalationAnswered():
                ending.pop(event.escalation, None)
                if event.response.verdict == "approve":
                    ending[event.escalation] = "it was approved in another home"
            case EscalationExpired():
                ending.pop(event.escalation, None)
            case CallIntended(escalation=str() as used):
                ending.pop(used, None)
            case _:
                pass
    return ending
