"""The own folder of a session that machines share: it travels as the session's last restore point.

Each lease has a folder of its own, named by its fencing number, so a process that lost its lease and wakes up writes into a folder
that nobody reads. If nobody else held the session since this machine released it, the folder is as it was and only gets its new
name; else it is filled from the last restore point. Calls that change files record one together with their outcome.
"""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from holdfast.core import SessionId
from holdfast.core.events import RecordedEvent, RestorePointMade, TurnEnded
from holdfast.session.branches.rewind_fork import last_point
from holdfast.session.restore_points import restore_limits
from holdfast.session.status import workspace_of
from holdfast.store import Home, Journal, Store, as_work_store, private_folder, sync_folder
from holdfast.world import RestorePoints

_RELEASED = ".released"


def is_shared(store: Store) -> bool:
    """Whether processes of other machines can open the sessions of a store."""
    shared = as_work_store(store)
    return shared is not None and shared.address is not None


def is_own_folder(folder: str, session: SessionId) -> bool:
    """Whether a recorded workspace is the session's own folder, in the data directory of any machine."""
    return not folder or Path(folder).parts[-3:] == ("sessions", session, "workspace")


class TravellingFolder:
    """The folder of one lease."""

    def __init__(self, home: Home, journal: Journal) -> None:
        self._home = home
        self._journal = journal
        self._parent = home.session_folder(journal.session) / "workspaces"
        self.path = self._parent / str(journal.fence)

    async def open(self, store: Store) -> None:
        """Bring the files of the session here."""
        private_folder(self._parent)
        before = self._parent / str(self._journal.fence - 1)
        released = before.with_suffix(_RELEASED)
        if released.exists() and before.is_dir():
            released.unlink()
            before.rename(self.path)
        else:
            shutil.rmtree(self.path, ignore_errors=True)  # of an attempt that was cut off
            await self._fill(store)
        await asyncio.to_thread(self._remove_others)

    async def close(self) -> None:
        """Note that the files here are complete, before the lease is released."""
        if self.path.is_dir():
            os.close(
                os.open(self.path.with_suffix(_RELEASED), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            )
            sync_folder(self._parent)

    async def _fill(self, store: Store) -> None:
        private_folder(self.path)
        manifest = _last_manifest(self._journal.recorded)
        if manifest is not None:
            points = RestorePoints(
                self.path,
                store=store,
                cache=self._home.stat_cache(self._journal.session),
                limits=restore_limits(self._journal.recorded),
            )
            await points.fill(manifest)
            points.save()

    def _remove_others(self) -> None:
        own = self._home.session_folder(self._journal.session)
        for other in self._parent.iterdir():
            if other.is_dir() and other != self.path:
                shutil.rmtree(other, ignore_errors=True)
                # What is derived from those files.
                shutil.rmtree(own / "view", ignore_errors=True)
            elif not other.is_dir():
                other.unlink(missing_ok=True)


async def readable_folder(home: Home, store: Store, session: SessionId) -> Path:
    """The files of a session, to look at without its lease; of a session that travels, a copy of its last restore point."""
    recorded = await store.read(session)
    folder = workspace_of(recorded)
    if not is_shared(store) or not is_own_folder(folder, session):
        return Path(folder or home.workspace(session))
    manifest = _last_manifest(recorded) or ""
    copies = private_folder(home.copies(session))
    copy = copies / (manifest or "empty")
    if not copy.is_dir():
        draft = copies / f"{copy.name}.{os.getpid()}"
        private_folder(draft)
        if manifest:
            await RestorePoints(draft, store=store, limits=restore_limits(recorded)).fill(manifest)
        for other in copies.iterdir():
            if other != draft:
                shutil.rmtree(other, ignore_errors=True)
        draft.rename(copy)
    return copy


@asynccontextmanager
async def changeable_folder(home: Home, store: Store, session: SessionId) -> AsyncIterator[Path]:
    """The files of a session for the block, to change them from outside. Of one that travels, the changes are recorded.

    Raises SessionHeld if it travels and a process holds it.
    """
    folder = workspace_of(await store.read(session))
    if not is_shared(store) or not is_own_folder(folder, session):
        yield Path(folder or home.workspace(session))
        return
    journal = await store.open(session)
    try:
        travelling = TravellingFolder(home, journal)
        await travelling.open(store)
        yield travelling.path
        points = RestorePoints(
            travelling.path,
            store=store,
            last=_last_manifest(journal.recorded),
            cache=home.stat_cache(session),
        )
        made = await points.make()
        points.save()
        if made.changes:
            turn = max((e.event.turn for e in journal.recorded if isinstance(e.event, TurnEnded)), default=0)
            await journal.append(RestorePointMade(turn=turn, manifest=made.manifest, changes=made.changes))
        await travelling.close()
    finally:
        await journal.release()


def _last_manifest(recorded: Sequence[RecordedEvent]) -> str | None:
    last = last_point(recorded)
    return last.event.manifest if last is not None and isinstance(last.event, RestorePointMade) else None
