"""Import of a session from an archive: files first, then its history, completely or not at all.

An archive may come from a stranger. It decides nothing about this machine: not the model that its words go to, not a policy,
not a folder, and no file that a program of the user executes. What it names is returned, so that a person can choose the same.
"""

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from holdfast.core import Limits, SessionId, Value, runs_when
from holdfast.core.errors import InvalidInput, SessionExists
from holdfast.core.events import BudgetRaised, RecordedEvent, RestorePointMade, SessionOpened, Signer
from holdfast.core.projection import ReplayedHistory, without_rewound
from holdfast.session.branches.rewind_fork import last_point
from holdfast.session.restore_points import IMPORTED_LIMITS
from holdfast.session.status import Status, workspace_of
from holdfast.store import (
    LARGE_ARCHIVE,
    ArchiveLimits,
    ArchiveSignature,
    Arrival,
    Home,
    HomeSignatures,
    Store,
    private_folder,
    remove_tree,
)
from holdfast.world import RestoreLimits, RestorePoints, open_folder

_RESTORE = msgspec.structs.replace(IMPORTED_LIMITS, manifest_bytes=16 << 20, entries=100_000)


class ArchiveChoices(Value):
    """What an archive names and this machine does not use."""

    model: str = ""
    policy: str = ""
    workspace: str = ""
    limits: Limits = Limits()
    """Its budget. It applies where it is stricter than the one of this machine."""


class ImportedSession(Value):
    """A session that was imported."""

    session: SessionId
    wanted: ArchiveChoices = ArchiveChoices()
    limits: Limits = Limits()
    """Its budget on this machine."""
    missing: tuple[str, ...] = ()
    """Files that no restore point contains."""
    protected: tuple[str, ...] = ()
    """Files that were not restored because they are protected or lead out of the folder."""
    executed: tuple[str, ...] = ()
    """Files that were restored and that other programs run or trust."""
    signer: Signer = ""
    """Who signed the file; empty if it is nobody that the person trusts, so that its words are a stranger's."""


async def import_archive(
    store: Store,
    home: Home,
    path: Path,
    *,
    now_ms: int,
    model: str = "",
    workspace: Path | None = None,
    limits: Limits | None = None,
    is_large: bool = False,
) -> ImportedSession:
    """Import a session. `workspace` is an empty folder for its files; without one it gets its own.

    `limits` is the budget of sessions on this machine. In each dimension the stricter one of it and the file's applies.
    With `is_large` the archive may take much memory.

    Raises InvalidInput, JournalDamaged if the archive was changed, SessionExists. Then nothing is listed or left behind.
    """
    folder = _empty_folder(workspace, home) if workspace is not None else None
    arriving = _Arriving(
        store,
        home,
        model=model,
        folder=folder,
        budget=limits or Limits(),
        limits=IMPORTED_LIMITS if is_large else _RESTORE,
    )
    try:
        session = await store.import_session(
            path,
            now_ms=now_ms,
            prepare=arriving.prepare,
            limits=LARGE_ARCHIVE if is_large else ArchiveLimits(),
            find_signer=arriving.find_signer,
        )
    except SessionExists:
        raise  # another import of the same session won, and the files are its own
    except BaseException:
        await asyncio.to_thread(arriving.clean_up)
        raise
    return msgspec.structs.replace(arriving.result, session=session)


class _Arriving:
    """Restores the files of one archive, and removes them again if the import fails."""

    def __init__(
        self,
        store: Store,
        home: Home,
        *,
        model: str,
        folder: Path | None,
        budget: Limits,
        limits: RestoreLimits,
    ) -> None:
        self._store, self._home, self._limits = store, home, limits
        self._model, self._folder, self._budget = model, folder, budget
        self._own_folder: Path | None = None
        self.result = ImportedSession(session=SessionId(""))

    def find_signer(self, statement: bytes, signature: ArchiveSignature) -> Signer:
        """Say who signed the archive."""
        signer = HomeSignatures(self._home).signer(statement, signature)
        self.result = msgspec.structs.replace(self.result, signer=signer)
        return signer

    async def prepare(self, session: SessionId, recorded: Sequence[RecordedEvent]) -> Arrival:
        """Restore the files of the last restore point."""
        wanted = _choices(recorded)
        budget = self._budget.narrowed(wanted.limits)
        self.result = msgspec.structs.replace(self.result, wanted=wanted, limits=budget)
        arrival = Arrival(workspace=str(self._folder or ""), model=self._model, limits=budget)
        point = last_point(recorded)
        if point is None or not isinstance(point.event, RestorePointMade):
            return arrival
        points = RestorePoints(
            self._prepared_folder(session),
            store=self._store,
            cache=self._home.stat_cache(session),
            limits=self._limits,
        )
        done = await points.restore(point.event.manifest)
        executed = tuple(change.path for change in done.changes if runs_when(change.path) is not None)
        self.result = msgspec.structs.replace(
            self.result, missing=done.left, protected=done.protected, executed=executed
        )
        restored = await points.make()
        points.save()
        if restored.manifest == point.event.manifest:
            return arrival
        made = RestorePointMade(turn=point.event.turn, manifest=restored.manifest)
        return msgspec.structs.replace(arrival, restore_point=made)

    def clean_up(self) -> None:
        """Remove the restored files."""
        if self._own_folder is not None:
            remove_tree(self._own_folder)
        if self._folder is not None:
            _clear(self._folder)

    def _prepared_folder(self, session: SessionId) -> Path:
        if self._folder is not None:
            return self._folder
        own = self._home.session_folder(session)
        if not own.exists():
            self._own_folder = own
        return private_folder(self._home.workspace(session))


def _choices(recorded: Sequence[RecordedEvent]) -> ArchiveChoices:
    status = Status(ReplayedHistory(recorded))
    limits = Limits()
    for entry in without_rewound(recorded):
        if isinstance(entry.event, SessionOpened | BudgetRaised):
            limits = entry.event.limits
    return ArchiveChoices(
        model=status.model, policy=status.policy, workspace=workspace_of(recorded), limits=limits
    )


def _empty_folder(workspace: Path, home: Home) -> Path:
    folder = open_folder(workspace, home.root)
    if os.listdir(folder):
        raise InvalidInput(
            f"the folder {str(workspace)!r} is not empty, so the session's files cannot be restored there",
            hint="choose an empty folder, or leave out -w: the session then gets its own folder",
        )
    return folder


def _clear(folder: Path) -> None:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                remove_tree(Path(entry.path))
            else:
                os.unlink(entry.path)
