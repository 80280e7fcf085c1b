"""Restore points: the workspace as it was after each turn, and what changed in it, by anyone."""

import asyncio
import contextlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from holdfast.core.errors import InvalidInput
from holdfast.core.events import Event, Noted, RecordedEvent, RestorePointMade, TurnEnded
from holdfast.core.projection import Projection, imported_through
from holdfast.session.branches.rewind_fork import RewindPlan, last_point
from holdfast.session.settings import Settings
from holdfast.store import Home, Journal, Store
from holdfast.world import MAX_QUICK_BYTES, ChangesSince, RestoreLimits, RestorePoints

MAX_QUICK_FILES = 50_000
"""Up to this size the first restore point takes seconds, not minutes."""
MAX_LISTED_CHANGES = 1_000
"""Changed files listed in the journal; the restore point has them all."""
IMPORTED_LIMITS = RestoreLimits(content_bytes=4 << 30, manifest_bytes=64 << 20, allows_links_out=False)
"""What a restore point of a file may restore: it is as large as an archive may be, and names a content as often as it likes."""
MAX_LISTED_FILES = 5
"""Files named in a note about what was not saved."""


_Handled = RestorePointMade | TurnEnded


class RestorePointState(Projection[_Handled]):
    """Whether a restore point exists, and whether one was made since the last turn ended."""

    def reset(self) -> None:
        self.has_any = False
        self.is_current = False
        self.manifest = ""

    def apply(self, event: _Handled, entry: RecordedEvent) -> None:
        match event:
            case RestorePointMade():
                self.has_any = self.is_current = True
                self.manifest = event.manifest
            case TurnEnded():
                self.is_current = False


class TurnRestorePoints:
    """Makes a restore point at the end of every turn. Does nothing if the session has no folder."""

    def __init__(self, journal: Journal, points: RestorePoints | None, *, travels: bool = False) -> None:
        self._journal = journal
        self._points = points
        self._travels = travels
        """Whether other machines fill the folder from the last restore point."""
        self._checkpointing = asyncio.Lock()
        self._state = RestorePointState(journal)

    async def make_missing(self, turns: int) -> None:
        """Make the restore point before the first turn, or the one that an interrupted turn did not make."""
        if not self._state.is_current:
            await self.make(turns)

    async def make(self, turn: int) -> None:
        """Make the restore point of a turn, of the workspace as it is now."""
        await self._journal.append(*await self._made(turn))

    async def checkpoint(self, turn: int) -> tuple[Event, ...]:
        """What to record together with a call that changed files, where a session travels; empty if no file changed."""
        if not self._travels:
            return ()
        async with self._checkpointing:
            made = await self._made(turn)
        manifests = [event.manifest for event in made if isinstance(event, RestorePointMade)]
        return made if manifests and manifests[0] != self._state.manifest else ()

    async def _made(self, turn: int) -> tuple[Event, ...]:
        if self._points is None:
            return ()
        point = await self._points.make()
        # The first restore point has nothing before it: what it found was already there.
        changes = point.changes if self._state.has_any else ()
        listed = changes[:MAX_LISTED_CHANGES]
        notes = [Noted(code="not-kept", text=_not_kept(point.unkept))] if point.unkept else []
        made = RestorePointMade(
            turn=turn, manifest=point.manifest, changes=listed, more=len(changes) - len(listed)
        )
        return *notes, made

    async def preview(self, plan: RewindPlan) -> RewindPlan:
        """The plan with the changes it would make to files."""
        if self._points is None:
            return plan
        preview = await self._points.preview(plan.manifest)
        return msgspec.structs.replace(plan, changes=preview.changes, left=preview.left)

    async def changes_since(self, manifest: str | None) -> ChangesSince:
        """How the workspace differs from a restore point. Raises InvalidInput if the session makes no restore points."""
        if self._points is None:
            raise InvalidInput(
                "this session makes no restore points, so its changes are not known",
                hint="holdfast config set restore_points always",
            )
        return await self._points.changes_since(manifest)

    async def restore(self, plan: RewindPlan) -> None:
        """Restore the files."""
        if self._points is not None:
            await self._points.restore(plan.manifest)


async def open_restore_points(
    root: Path, *, journal: Journal, store: Store, settings: Settings, home: Home, travels: bool = False
) -> RestorePoints | None:
    """The restore points of a folder, or None if none are made. A folder that travels always has them."""
    if settings.restore_points == "never" and not travels:
        return None
    last = last_point(journal.recorded)
    if (
        last is None
        and not travels
        and settings.restore_points == "auto"
        and await asyncio.to_thread(_is_large, root)
    ):
        text = "this folder is large, so turns cannot be rewound here unless restore_points is set to always"
        await journal.append(Noted(code="no-restore-points", text=text))
        return None
    manifest = last.event.manifest if last is not None and isinstance(last.event, RestorePointMade) else None
    return RestorePoints(
        root,
        store=store,
        last=manifest,
        cache=home.stat_cache(journal.session),
        max_new_bytes=None if settings.restore_points == "always" else MAX_QUICK_BYTES,
        limits=restore_limits(journal.recorded),
    )


def restore_limits(recorded: Iterable[RecordedEvent]) -> RestoreLimits:
    """How much a restore point of this history may restore. One that Holdfast made has no limit."""
    return IMPORTED_LIMITS if imported_through(recorded) else RestoreLimits()


def _not_kept(files: Sequence[str]) -> str:
    named = ", ".join(files[:MAX_LISTED_FILES])
    more = f" and {len(files) - MAX_LISTED_FILES} more" if len(files) > MAX_LISTED_FILES else ""
    return f"too large or not readable, so not saved: {named}{more}; a rewind leaves them unchanged"


def _is_large(root: Path) -> bool:
    """Whether reading every file once would take long. Stops as soon as that is clear."""
    files = size = 0
    pending: list[str | Path] = [
        root
    ]  # not os.walk: before Python 3.12 it recurses, and folders may be nested too deeply for that
    while pending:
        with contextlib.suppress(OSError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                    continue
                files += 1
                with contextlib.suppress(OSError):
                    size += entry.stat(follow_symlinks=False).st_size
                if files > MAX_QUICK_FILES or size > MAX_QUICK_BYTES:
                    return True
    return False
