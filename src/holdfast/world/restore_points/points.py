"""Restore points: the workspace as it was after a turn, whoever changed it, brought back byte by byte.

Contents lie in the store under their SHA-256, each once. What did not change is neither read nor kept again. Bringing back
first makes a point of what is there now, so that it can be taken back itself; it is safe to repeat, which is what to do
after it was cut off. Nothing is removed or replaced whose content was not kept.
"""

import asyncio
import stat
from pathlib import Path

from holdfast.core import Change, Value
from holdfast.store import BlobStore
from holdfast.world.paths.open_beneath import BeneathRoot
from holdfast.world.restore_points.manifest import (
    Delta,
    Entry,
    Tree,
    changes_in,
    difference,
    is_unkept,
    load,
    manifest_of,
    pack,
    readable,
    without_unkept,
)
from holdfast.world.restore_points.restore import TreeRestorer
from holdfast.world.restore_points.save import SnapshotWriter, only_names, unkept
from holdfast.world.restore_points.scan import ScanEntry, StatCache, scan_tree

MAX_QUICK_BYTES = 2_000_000_000
"""Up to here keeping contents takes seconds and not minutes, and what is kept is of a size nobody minds."""
MANY_CHANGES = 1000
"""After so many files were read the signs are saved, so that a crash does not cost reading them again."""


class RestorePoint(Value):
    """A moment that can be brought back, and what changed since the one before."""

    manifest: str
    changes: tuple[Change, ...] = ()
    skipped: tuple[str, ...] = ()
    """What is not kept: pipes, devices, what the system did not let us read, and what is too large."""
    unkept: tuple[str, ...] = ()
    """The files among it that are new or changed since the point before."""


class Preview(Value):
    """What bringing back a restore point would change."""

    changes: tuple[Change, ...]
    left: tuple[str, ...] = ()
    """Files that stay as they are, because their content was not kept: now, or when the point was made."""


class Restored(Preview):
    """What bringing back changed; `before` names the restore point of what was there."""

    before: str


class RestorePoints:
    """Makes and brings back restore points of one folder. `last` is the newest one that was made of it before.

    Beside what was kept already a point keeps `most_new_bytes`, None for no bound: of what is new the largest files are left out,
    however little of a sparse one is on the disk.
    """

    def __init__(
        self,
        root: Path,
        *,
        store: BlobStore,
        last: str | None = None,
        cache: Path | None = None,
        most_new_bytes: int | None = MAX_QUICK_BYTES,
    ) -> None:
        self._root = BeneathRoot(root)
        self._store = store
        self._keeper = SnapshotWriter(self._root, store.ingest)
        self._signs = StatCache(cache)
        self._most_new_bytes = most_new_bytes
        self._last = last
        self._chain = 0
        self._tree: Tree | None = None if last else {}
        self._skipped: tuple[str, ...] = ()

    async def make(self) -> RestorePoint:
        """A restore point of now; where nothing changed it is the last one."""
        before = await self._known()
        delta = await self._look(before, self._keeper)
        if self._last is not None and not delta:
            return RestorePoint(manifest=self._last, skipped=self._skipped)
        tree = _applied(before, delta)
        manifest = manifest_of(tree, delta, self._last, self._chain)
        digest = await self._store.put_blob(pack(manifest))
        self._set(tree, digest, manifest.chain)
        return RestorePoint(
            manifest=digest,
            changes=changes_in(delta, before),
            skipped=self._skipped,
            unkept=tuple(sorted(readable(path) for path, entry in delta.items() if is_unkept(entry))),
        )

    async def restore(self, manifest: str) -> Restored:
        """Bring the folder back to a restore point, byte by byte."""
        point = await self.make()
        now = await self._known()
        target, chain = await load(manifest, self._store.blob)
        delta, left = without_unkept(difference(now, target), now)
        await TreeRestorer(self._root, self._store).apply(now, delta)
        self._set(target, manifest, chain)
        return Restored(changes=changes_in(delta, now), left=left, before=point.manifest)

    async def fill(self, manifest: str) -> None:
        """Lay a restore point out in an empty folder that nobody else has in hand yet, such as that of a fork."""
        target, chain = await load(manifest, self._store.blob)
        await TreeRestorer(self._root, self._store).apply({}, difference({}, target))
        self._set(target, manifest, chain)
        # Nobody was here between writing a file and this look at it, so it is as it was written.
        for look in await asyncio.to_thread(list, scan_tree(self._root)):
            if look.path in target:
                self._signs.note(look, target[look.path])

    async def preview(self, manifest: str) -> Preview:
        """What bringing back a restore point would change. It keeps nothing."""
        now = await self._now()
        target, _ = await load(manifest, self._store.blob)
        delta, left = without_unkept(difference(now, target), now)
        return Preview(changes=changes_in(delta, now), left=left)

    async def unkept(self, manifest: str) -> tuple[str, ...]:
        """The files of a restore point whose content was not kept."""
        tree, _ = await load(manifest, self._store.blob)
        return tuple(sorted(readable(path) for path, entry in tree.items() if is_unkept(entry)))

    async def diff(self, manifest: str, to: str | None = None) -> tuple[Change, ...]:
        """What changes on the way from one restore point to another, or to what is there now. It keeps nothing."""
        before, _ = await load(manifest, self._store.blob)
        after = (await load(to, self._store.blob))[0] if to is not None else await self._now()
        return changes_in(difference(before, after), before)

    def save(self) -> None:
        """Remember what the files look like, for the next process; to be called when the session is put away."""
        self._signs.save()

    async def _known(self) -> Tree:
        """The tree of the last restore point."""
        if self._tree is None:
            assert self._last is not None
            tree, chain = await load(self._last, self._store.blob)
            self._set(tree, self._last, chain)
            return tree
        return self._tree

    async def _now(self) -> Tree:
        """The tree as it is, with nothing kept."""
        known = await self._known()
        return _applied(known, await self._look(known, SnapshotWriter(self._root, only_names)))

    def _set(self, tree: Tree, manifest: str, chain: int) -> None:
        self._tree, self._last, self._chain = tree, manifest, chain
        self._skipped = tuple(
            sorted(readable(path) for path, entry in tree.items() if entry.kind in ("unkept", "other"))
        )

    async def _look(self, before: Tree, keeper: SnapshotWriter) -> Delta:
        """What is different now from the tree before; only what may have changed is read."""
        seen, unread = await asyncio.to_thread(self._compare, before)
        delta: Delta = {}
        too_large = self._too_large(unread, before)
        entries = await keeper.entries([look for look in unread if look not in too_large])
        entries.update((look, unkept(look)) for look in too_large)
        for look in unread:
            entry = entries.get(look)
            if entry is not None:
                self._signs.note(look, entry)
            if before.get(look.path) != entry:
                delta[look.path] = entry
        delta.update({path: None for path in before if path not in seen})
        if len(unread) >= MANY_CHANGES:
            await asyncio.to_thread(self._signs.save)
        return delta

    def _compare(self, before: Tree) -> tuple[set[str], list[ScanEntry]]:
        """All that is there, and what of it has to be read."""
        seen: set[str] = set()
        unread: list[ScanEntry] = []
        for look in scan_tree(self._root):
            seen.add(look.path)
            known = before.get(look.path)
            is_wanted_now = is_unkept(known) and self._most_new_bytes is None
            if known is None or is_wanted_now or not self._signs.vouch_for(look, known):
                unread.append(look)
        return seen, unread

    def _too_large(self, unread: list[ScanEntry], before: Tree) -> set[ScanEntry]:
        """What there was or is no room for: the largest of the files that have grown."""
        if self._most_new_bytes is None:
            return set()
        kept_out = (look for look in unread if is_unkept(before.get(look.path)))
        too_large = {look for look in kept_out if before[look.path] == unkept(look)}
        grown = sorted(
            (_growth(look, before.get(look.path)), look)
            for look in unread
            if stat.S_ISREG(look.mode) and look not in too_large
        )
        room = self._most_new_bytes
        for growth, look in grown:
            room -= growth
            if growth and room < 0:
                too_large.add(look)
        return too_large


def _growth(look: ScanEntry, known: Entry | None) -> int:
    """By how much a file is larger than what was kept of it: what it takes to keep it, at most."""
    return max(0, look.size - (known.size if known is not None and known.kind == "file" else 0))


def _applied(tree: Tree, delta: Delta) -> Tree:
    after = {**tree, **{path: entry for path, entry in delta.items() if entry is not None}}
    for path, entry in delta.items():
        if entry is None:
            after.pop(path, None)
    return after
