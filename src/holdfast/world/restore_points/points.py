"""Restore points: snapshots of a workspace after a turn, including changes by other programs, restored byte by byte.

The store keeps each content once, by its SHA-256. Unchanged files are neither read nor stored again. A restore first makes a
point of the current state, so that it can be undone. An interrupted restore can be repeated safely. A file whose content is
not stored is never removed or replaced.
"""

import asyncio
import stat
from pathlib import Path

from holdfast.core import Change, Value
from holdfast.store import BlobStore
from holdfast.world.paths.open_beneath import BeneathRoot
from holdfast.world.paths.protected import protected_in
from holdfast.world.restore_points.changes_since import ChangesSince, compare_trees
from holdfast.world.restore_points.manifest import (
    MAX_CHAIN,
    Delta,
    Tree,
    TreeEntry,
    changes_in,
    difference,
    is_link_out,
    is_unkept,
    load,
    manifest_of,
    pack,
    readable,
    without_links_out,
    without_protected,
    without_unkept,
)
from holdfast.world.restore_points.restore import TreeRestorer
from holdfast.world.restore_points.save import SnapshotWriter, discard_contents, unkept
from holdfast.world.restore_points.scan import ScanEntry, StatCache, scan_tree

MAX_QUICK_BYTES = 2_000_000_000
"""Storing this much takes seconds, not minutes, and an acceptable amount of disk space."""
MANY_CHANGES = 1000
"""After this many changed files the stat cache is saved, so that a crash does not cause reading them again."""


class RestorePoint(Value):
    """A snapshot, with the changes since the one before."""

    manifest: str
    changes: tuple[Change, ...] = ()
    skipped: tuple[str, ...] = ()
    """What is not stored: pipes, devices, and files that are unreadable or too large."""
    unkept: tuple[str, ...] = ()
    """The skipped files that are new or changed since the point before."""


class Preview(Value):
    """What a restore would change."""

    changes: tuple[Change, ...]
    left: tuple[str, ...] = ()
    """Files that stay as they are, because their content is not stored, now or in the restore point."""
    protected: tuple[str, ...] = ()
    """Git repositories and files of Holdfast that differ and stay as they are, because no restore point may change them."""


class Restored(Preview):
    """What a restore changed; `before` is the restore point of the state before it."""

    before: str


class RestoreLimits(Value):
    """What a restore point that somebody else made may contain. None is unlimited."""

    content_bytes: int | None = None
    """The contents of all files, each counted as often as it is written."""
    manifest_bytes: int | None = None
    """The lists of files, with those that they are based on."""
    entries: int | None = None
    """Files and folders in these lists."""
    allows_links_out: bool = True
    """Whether it may have symlinks that lead out of the workspace."""


class RestorePoints:
    """Makes and restores restore points of one folder. `last` is the newest existing one.

    A point stores at most `max_new_bytes` of new content (None: unlimited) and skips the largest new files. A sparse file
    counts with its full size. A restore leaves git repositories and files of Holdfast as they are, and stays within `limits`.
    """

    def __init__(
        self,
        root: Path,
        *,
        store: BlobStore,
        last: str | None = None,
        cache: Path | None = None,
        max_new_bytes: int | None = MAX_QUICK_BYTES,
        limits: RestoreLimits | None = None,
    ) -> None:
        self._root = BeneathRoot(root)
        self._store = store
        self._writer = SnapshotWriter(self._root, store.ingest)
        self._stat_cache = StatCache(cache)
        self._max_new_bytes = max_new_bytes
        self._limits = limits or RestoreLimits()
        self._last = last
        self._chain = 0
        self._tree: Tree | None = None if last else {}
        self._skipped: tuple[str, ...] = ()

    async def make(self) -> RestorePoint:
        """Make a restore point; the last one if nothing changed."""
        before = await self._known()
        delta = await self._changes_since(before, self._writer)
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
        """Restore the folder to a restore point, byte by byte. Raises JournalDamaged if it exceeds the limits."""
        point = await self.make()
        now = await self._known()
        target, chain = await self._load(manifest)
        delta, protected = self._allowed(now, target)
        delta, left = without_unkept(delta, now)
        await self._restorer().apply(now, delta)
        self._restored(target, now, manifest, chain, has_protected=bool(protected))
        return Restored(changes=changes_in(delta, now), left=left, protected=protected, before=point.manifest)

    async def fill(self, manifest: str) -> None:
        """Restore into an empty folder that no other process uses yet, such as that of a fork. Raises JournalDamaged."""
        target, chain = await self._load(manifest)
        delta, protected = self._allowed({}, target)
        await self._restorer().apply({}, delta)
        self._restored(target, {}, manifest, chain, has_protected=bool(protected))
        # No other process uses the folder yet, so every file is as it was written.
        for scanned in await asyncio.to_thread(list, scan_tree(self._root)):
            if scanned.path in target:
                self._stat_cache.record(scanned, target[scanned.path])

    async def preview(self, manifest: str) -> Preview:
        """What a restore would change. Stores nothing."""
        now = await self._now()
        target, _ = await self._load(manifest)
        delta, protected = self._allowed(now, target)
        delta, left = without_unkept(delta, now)
        return Preview(changes=changes_in(delta, now), left=left, protected=protected)

    async def unkept(self, manifest: str) -> tuple[str, ...]:
        """The files of a restore point whose content is not stored."""
        tree, _ = await load(manifest, self._store.blob)
        return tuple(sorted(readable(path) for path, entry in tree.items() if is_unkept(entry)))

    async def diff(self, manifest: str, to: str | None = None) -> tuple[Change, ...]:
        """The changes from one restore point to another, or to the current state. Stores nothing."""
        before, _ = await load(manifest, self._store.blob)
        after = (await load(to, self._store.blob))[0] if to is not None else await self._now()
        return changes_in(difference(before, after), before)

    async def changes_since(self, manifest: str | None) -> ChangesSince:
        """How the folder differs from a restore point; None is an empty folder. Repositories are not compared. Stores nothing."""
        base: Tree = (await load(manifest, self._store.blob))[0] if manifest is not None else {}
        return compare_trees(base, await self._now())

    def save(self) -> None:
        """Save the stat cache for the next process. Call it when the session is closed."""
        self._stat_cache.save()

    async def _load(self, manifest: str) -> tuple[Tree, int]:
        limits = self._limits
        return await load(
            manifest, self._store.blob, max_bytes=limits.manifest_bytes, max_entries=limits.entries
        )

    def _allowed(self, now: Tree, target: Tree) -> tuple[Delta, tuple[str, ...]]:
        """What a restore may change, and what stays as it is."""
        delta, protected = without_protected(difference(now, target), now, target)
        if self._limits.allows_links_out:
            return delta, protected
        delta, links = without_links_out(delta, now)
        return delta, (*protected, *links)

    def _restorer(self) -> TreeRestorer:
        return TreeRestorer(self._root, self._store, max_bytes=self._limits.content_bytes)

    async def _known(self) -> Tree:
        """The tree of the last restore point."""
        if self._tree is None:
            assert self._last is not None
            tree, chain = await load(self._last, self._store.blob)
            self._set(tree, self._last, chain)
            return tree
        return self._tree

    async def _now(self) -> Tree:
        """The current tree. Stores nothing."""
        known = await self._known()
        return _applied(known, await self._changes_since(known, SnapshotWriter(self._root, discard_contents)))

    def _set(self, tree: Tree, manifest: str, chain: int) -> None:
        self._tree, self._last, self._chain = tree, manifest, chain
        self._skipped = tuple(
            sorted(readable(path) for path, entry in tree.items() if entry.kind in ("unkept", "other"))
        )

    def _restored(self, target: Tree, now: Tree, manifest: str, chain: int, *, has_protected: bool) -> None:
        """Set the tree after a restore. What is protected is as before, so the next point cannot be based on the manifest."""
        if not has_protected:
            self._set(target, manifest, chain)
            return
        kept = set(dict(protected_in(now.keys() | target.keys())))
        if not self._limits.allows_links_out:
            kept |= {path for path, entry in target.items() if is_link_out(path, entry)}
        tree = {path: entry for path, entry in target.items() if path not in kept}
        tree |= {path: entry for path, entry in now.items() if path in kept}
        self._set(tree, manifest, MAX_CHAIN)

    async def _changes_since(self, before: Tree, writer: SnapshotWriter) -> Delta:
        """The changes since a tree. Reads only files that may have changed."""
        seen, unread = await asyncio.to_thread(self._compare, before)
        delta: Delta = {}
        too_large = self._too_large(unread, before)
        entries = await writer.entries([scanned for scanned in unread if scanned not in too_large])
        entries.update((scanned, unkept(scanned)) for scanned in too_large)
        for scanned in unread:
            entry = entries.get(scanned)
            if entry is not None:
                self._stat_cache.record(scanned, entry)
            if before.get(scanned.path) != entry:
                delta[scanned.path] = entry
        delta.update({path: None for path in before if path not in seen})
        if len(unread) >= MANY_CHANGES:
            await asyncio.to_thread(self._stat_cache.save)
        return delta

    def _compare(self, before: Tree) -> tuple[set[str], list[ScanEntry]]:
        """All current paths, and the entries that have to be read."""
        seen: set[str] = set()
        unread: list[ScanEntry] = []
        for scanned in scan_tree(self._root):
            seen.add(scanned.path)
            known = before.get(scanned.path)
            is_wanted_now = is_unkept(known) and self._max_new_bytes is None
            if known is None or is_wanted_now or not self._stat_cache.is_unchanged(scanned, known):
                unread.append(scanned)
        return seen, unread

    def _too_large(self, unread: list[ScanEntry], before: Tree) -> set[ScanEntry]:
        """The files to skip: the largest new ones beyond the limit, and unchanged ones that were skipped before."""
        if self._max_new_bytes is None:
            return set()
        kept_out = (scanned for scanned in unread if is_unkept(before.get(scanned.path)))
        too_large = {scanned for scanned in kept_out if before[scanned.path] == unkept(scanned)}
        grown = sorted(
            (_growth(scanned, before.get(scanned.path)), scanned)
            for scanned in unread
            if stat.S_ISREG(scanned.mode) and scanned not in too_large
        )
        room = self._max_new_bytes
        for growth, scanned in grown:
            room -= growth
            if growth and room < 0:
                too_large.add(scanned)
        return too_large


def _growth(scanned: ScanEntry, known: TreeEntry | None) -> int:
    """How many bytes storing a file takes at most: its growth since it was last stored."""
    return max(0, scanned.size - (known.size if known is not None and known.kind == "file" else 0))


def _applied(tree: Tree, delta: Delta) -> Tree:
    after = {**tree, **{path: entry for path, entry in delta.items() if entry is not None}}
    for path, entry in delta.items():
        if entry is None:
            after.pop(path, None)
    return after
