"""Writing what programs did to files into the workspace, or into what is staged over it. The gate decides which."""

from collections.abc import Callable
from contextlib import suppress

from holdfast.core import Change, FileEffect
from holdfast.core.errors import HoldfastError, PathRefused
from holdfast.world.contract import World, delete_name, write_name
from holdfast.world.paths.names import folders_above
from holdfast.world.staging.staged_world import StagedWorld

ReadContent = Callable[[], bytes]
"""Loads the new content of a file."""


class EffectWriter:
    """Applies judged effects. Each is applied as a whole; none is applied through a symlink."""

    def __init__(self, staged: StagedWorld) -> None:
        self._staged = staged
        self._left: dict[str, World] = {}
        """The folders that files were deleted from since the last `prune`."""

    def apply(
        self, effect: FileEffect, read: ReadContent, *, is_staged: bool, asks: str = ""
    ) -> tuple[Change, ...]:
        """Write or stage one effect. Raises PathRefused, QuotaExceeded or OSError, and then nothing is changed."""
        staged = self._staged
        # A program changed the name itself. Following a symlink would change another file.
        if staged.resolve_name(effect.path) != effect.path:
            raise PathRefused(f"{effect.path!r} is reached through a symlink")
        # A file with a staged change is changed in the overlay, which would otherwise hide the new content.
        into: World = staged if is_staged or staged.has_staged(effect.path, is_name=True) else staged.base
        if effect.kind == "deleted":
            is_there = into.link_target(effect.path) is not None or into.exists(effect.path)
            changes = delete_name(into, effect.path) if is_there else ()
            self._left.update(dict.fromkeys(folders_above(effect.path)[:1], into))
        else:
            content = read()
            if effect.kind == "created" and _is_folder(into, effect.path):
                # A program replaced the folder by a file. What it did not delete must not go with it.
                into.delete(effect.path, recursive=not _has_files(into, effect.path))
            changes = (write_name(into, effect.path, content, mode=effect.mode),)
        if not asks:
            return changes
        return tuple(staged.ask_about(change, asks) if change.is_staged else change for change in changes)

    def prune(self) -> None:
        """Remove the folders that deletions left empty: like git, a program leaves no folder without files."""
        left, self._left = self._left, {}
        for folder, world in left.items():
            with suppress(HoldfastError, OSError):  # the file is deleted; an empty folder may stay
                for each in (folder, *folders_above(folder)):
                    if world.exists(each):
                        if world.names(each):
                            break
                        world.delete(each)


def _is_folder(world: World, path: str) -> bool:
    try:
        return world.link_target(path) is None and world.stat(path).kind == "folder"
    except (FileNotFoundError, NotADirectoryError):
        return False


def _has_files(world: World, folder: str) -> bool:
    waiting = [folder]
    while waiting:
        for each in world.names(waiting.pop()):
            if not _is_folder(world, each):
                return True
            waiting.append(each)
    return False
