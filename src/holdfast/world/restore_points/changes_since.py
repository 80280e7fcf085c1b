"""How a folder differs from a restore point, file by file: the work that was done since, as a merge needs it."""

import os

from holdfast.core import LINK_MODE, Value
from holdfast.world.contract import NOTHING, fingerprint_of
from holdfast.world.paths.names import is_reachable
from holdfast.world.restore_points.manifest import (
    Tree,
    TreeEntry,
    difference,
    readable,
    without_protected,
    without_unkept,
)


class BaseFile(Value):
    """A file or symlink as a restore point has it; `fingerprint` is empty if it does not have it."""

    path: str
    fingerprint: str = NOTHING
    mode: int | None = None


class ChangesSince(Value):
    """How a folder differs from a restore point. Git repositories and files of Holdfast are not compared."""

    files: tuple[BaseFile, ...] = ()
    """The files that are not as in the restore point, as the restore point has them."""
    made_folders: tuple[str, ...] = ()
    gone_folders: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    """What differs and is not compared: devices, files whose content is not stored, names that no guest can use."""


def compare_trees(base: Tree, now: Tree) -> ChangesSince:
    """How the tree of a folder differs from that of a restore point."""
    delta, _ = without_protected(difference(base, now), base, now)
    # A file that the restore point does not store was never in a folder that was filled from it.
    delta, left = without_unkept(delta, base)
    other = {readable(path) for path in now if readable(path) in left}
    files: list[BaseFile] = []
    made: list[str] = []
    gone: list[str] = []
    for path, entry in sorted(delta.items()):
        old = base.get(path)
        kinds = {each.kind for each in (old, entry) if each is not None}
        if not is_reachable(path) or not kinds <= {"file", "folder", "link"}:
            other.add(readable(path))
            continue
        if _is(old, "folder") and not _is(entry, "folder"):
            gone.append(path)
        if _is(entry, "folder") and not _is(old, "folder"):
            made.append(path)
        if old is not None and old.kind == "file":
            files.append(BaseFile(path=path, fingerprint=old.fingerprint, mode=old.mode))
        elif old is not None and old.kind == "link":
            fingerprint = fingerprint_of(os.fsencode(old.target))
            files.append(BaseFile(path=path, fingerprint=fingerprint, mode=LINK_MODE))
        elif _is(entry, "file") or _is(entry, "link"):
            files.append(BaseFile(path=path))
    return ChangesSince(
        files=tuple(files),
        made_folders=tuple(made),
        gone_folders=tuple(gone),
        left=tuple(sorted(other)),
    )


def _is(entry: TreeEntry | None, kind: str) -> bool:
    return entry is not None and entry.kind == kind
