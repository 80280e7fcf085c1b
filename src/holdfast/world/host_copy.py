"""Copies files between a world and the host's disk. For people and host programs, never for guests."""

import errno
import os
from pathlib import Path

from holdfast.core import Change, link_problem
from holdfast.world.contract import World
from holdfast.world.paths.names import is_within

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW


def links_in(source: Path) -> tuple[Path, ...]:
    """The symlinks in a folder on the host, which `copy_in` skips; sorted."""
    if not source.is_dir():
        return ()
    return tuple(sorted(each for each in source.rglob("*") if each.is_symlink()))


class HostCopyMixin:
    """`copy_in` and `copy_out` for every world."""

    def copy_in(self: World, source: Path, path: str, *, overwrite: bool = False) -> tuple[Change, ...]:
        """Copy a file or a folder from the host into the world. Symlinks in a folder are skipped; `links_in` lists them."""
        if not source.is_dir():
            mode = source.stat().st_mode & 0o777
            return (self.write(path, source.read_bytes(), overwrite=overwrite, mode=mode),)
        files = sorted(each for each in source.rglob("*") if each.is_file() and not each.is_symlink())
        targets = [(file, f"{path}/{file.relative_to(source).as_posix()}") for file in files]
        taken = [target for _, target in targets if not overwrite and self.exists(target)]
        if taken:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), taken[0])
        self.make_folder(path)
        return tuple(
            self.write(target, file.read_bytes(), mode=file.stat().st_mode & 0o777)
            for file, target in targets
        )

    def copy_out(self: World, path: str, destination: Path, *, overwrite: bool = False) -> tuple[Path, ...]:
        """Copy a file or a folder from the world to the host. A symlink at the destination is never followed.

        Symlinks in a folder are copied if they stay in it.
        """
        found = self.stat(path)
        if found.kind == "file":
            return (_write(self, found.path, destination, overwrite=overwrite),)
        prefix = "" if found.path == "." else f"{found.path}/"
        inside = [each for each in self.files() if found.path == "." or is_within(each, found.path)]
        destination.mkdir(parents=True, exist_ok=True)
        copied = [
            _write(self, each, destination / each.removeprefix(prefix), overwrite=overwrite)
            for each in inside
        ]
        for each in self.links():
            target = self.link_target(each) or ""
            inner = each.removeprefix(prefix)
            # A symlink that leads out of the copied folder would lead elsewhere, or to the original.
            if (found.path == "." or is_within(each, found.path)) and not link_problem(inner, target):
                copied.append(_link(target, destination / inner, overwrite=overwrite))
        return tuple(copied)


def _link(target: str, at: Path, *, overwrite: bool) -> Path:
    at.parent.mkdir(parents=True, exist_ok=True)
    if overwrite:
        at.unlink(missing_ok=True)
    os.symlink(target, at)
    return at


def _write(world: World, path: str, target: Path, *, overwrite: bool) -> Path:
    target.parent.mkdir(parents=True, exist_ok=True)
    if overwrite:
        target.unlink(missing_ok=True)
    opened = os.open(target, _CREATE, world.stat(path).mode)
    with open(opened, "wb") as file:
        file.write(world.read(path))
    return target
