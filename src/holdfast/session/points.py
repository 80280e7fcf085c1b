"""Restore points: the workspace as it was after each turn, made by reading what may have changed."""

import contextlib
import os
from pathlib import Path

from holdfast.core import Change
from holdfast.core.events import (
    AnyEvent,
    CallSettled,
    Noted,
    ProposalsCommitted,
    Recorded,
    RestorePointMade,
)
from holdfast.core.fold import Fold
from holdfast.session.rewinding import RewindPlan, last_point
from holdfast.session.settings import Settings
from holdfast.store import Home, Journal, Store
from holdfast.world import RestorePoints

MAX_QUICK_FILES = 5_000
MAX_QUICK_BYTES = 200_000_000
"""Up to here the first restore point takes a moment and not a minute."""


class Marks(Fold):
    """The newest restore point that counts, and the files that calls and commits changed since."""

    def reset(self) -> None:
        self.last: RestorePointMade | None = None
        self.touched: set[str] = set()

    def apply(self, event: AnyEvent, entry: Recorded) -> None:
        match event:
            case RestorePointMade():
                self.last, self.touched = event, set()
            case CallSettled() | ProposalsCommitted():
                self.touched.update(change.path for change in event.changes if not change.is_staged)
            case _:
                pass


class TurnPoints:
    """Keeps a restore point for the end of every turn; where there is no folder to keep, it does nothing."""

    def __init__(self, journal: Journal, points: RestorePoints | None, *, has_outside_tools: bool) -> None:
        self._journal = journal
        self._points = points
        self._marks = Marks(journal)
        self._has_outside_tools = has_outside_tools
        """Whether tools may change files without telling us."""

    async def mark_missing(self, turns: int) -> None:
        """Make the point before the first turn, or the one that a cancelled or cut-off turn did not come to make."""
        last = self._marks.last
        if last is None or last.turn < turns:
            await self.mark(turns)

    async def mark(self, turn: int) -> None:
        """Make the point of a turn; where nothing can have changed, the last one stands for it too."""
        if self._points is None:
            return
        last, touched = self._marks.last, self._marks.touched
        if last is not None and not touched and not self._has_outside_tools:
            manifest = last.manifest
        else:
            look_at = sorted(touched) if last is not None and not self._has_outside_tools else None
            manifest = (await self._points.make(look_at)).manifest
        await self._journal.append(RestorePointMade(turn=turn, manifest=manifest))

    async def keep(self, turn: int) -> None:
        """Make a point of the workspace as it is now, whoever changed it."""
        if self._points is not None:
            manifest = (await self._points.make()).manifest
            await self._journal.append(RestorePointMade(turn=turn, manifest=manifest))

    async def preview(self, plan: RewindPlan) -> tuple[Change, ...]:
        """What would happen to files."""
        return await self._points.preview(plan.manifest) if self._points is not None else ()

    async def restore(self, plan: RewindPlan) -> None:
        """Bring the files back."""
        if self._points is not None:
            await self._points.restore(plan.manifest)


async def restore_points(
    root: Path, *, journal: Journal, store: Store, settings: Settings, home: Home
) -> RestorePoints | None:
    """Restore points of a folder, or None where there are none to be made."""
    if settings.restore_points == "never":
        return None
    last = last_point(journal.recorded)
    if last is None and settings.restore_points == "auto" and _is_large(root):
        text = (
            "this folder is large: turns cannot be gone back to here unless restore_points is set to always"
        )
        await journal.append(Noted(code="no-restore-points", text=text))
        return None
    manifest = last.event.manifest if last is not None and isinstance(last.event, RestorePointMade) else None
    cache = home.cache / "signs" / journal.session
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
