"""A folder on disk as a world, with path containment, protected names and a quota.

Operations run on paths without symlinks. If a path contains one, the world resolves it, checks the protections of the result
and starts the operation again. So the path that was checked is the path that is opened, even if symlinks are swapped in the
meantime.
"""

import errno
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from holdfast.core import LINK_MODE, Change, link_destination, link_problem
from holdfast.core.errors import PathRefused
from holdfast.core.globs import compile_file_glob
from holdfast.world.contract import NOT_EMPTY, NOTHING, Hit, Stat, as_bytes, fingerprint_of, tree_fingerprint
from holdfast.world.folder.files import PERMISSIONS, PlainFiles, is_abandoned
from holdfast.world.folder.fsync import sync_files
from holdfast.world.folder.quota import DiskUsage, Quota, UsageMeter
from holdfast.world.host_copy import HostCopyMixin
from holdfast.world.paths.names import (
    GUEST_ROOTS,
    check_text,
    is_reachable,
    is_within,
    parent_and_name,
    relative,
)
from holdfast.world.paths.open_beneath import BeneathRoot, Opener, SymlinkEncountered
from holdfast.world.paths.protected import Protections, may_change_repository
from holdfast.world.paths.walk import children, walk
from holdfast.world.search import search_files

_ATTEMPTS = 8
_T = TypeVar("_T")


class FolderWorld(HostCopyMixin):
    """The files of a folder."""

    def __init__(
        self,
        root: Path,
        *,
        quota: Quota | None = None,
        protected: Sequence[str] = (),
        opener: Opener | None = None,
    ) -> None:
        self.root = BeneathRoot(root, opener=opener)
        self._files = PlainFiles(self.root)
        # Removing a name changes no content, so a file with several hard links can be removed.
        self._names = PlainFiles(self.root, allows_hard_links=True)
        self._protections = Protections(protected)
        self._meter = UsageMeter(quota, self._count)
        self._roots = (*GUEST_ROOTS, self.root.real)

    def resolve(self, path: str) -> str:
        return self.root.resolve(relative(path, self._roots))

    def resolve_name(self, path: str) -> str:
        given = relative(path, self._roots)
        if given == ".":
            return given
        parent, name = parent_and_name(given)
        real = self.root.resolve(parent)
        return name if real == "." else f"{real}/{name}"

    def normal(self, path: str) -> str:
        return relative(path, self._roots)

    def read(self, path: str, *, offset: int = 0, length: int | None = None) -> bytes:
        return self._at(path, lambda real: self._files.read(real, offset=offset, length=length))

    def list(self, pattern: str = "**/*") -> tuple[str, ...]:
        glob = compile_file_glob(pattern)
        matches = glob.expression.fullmatch
        try:
            files = self._all_files(glob.base_folder)
        except (FileNotFoundError, NotADirectoryError, SymlinkEncountered):
            return ()
        return tuple(sorted(path for path in files if matches(path)))

    def files(self) -> tuple[str, ...]:
        return tuple(sorted(self._all_files(".")))

    def entries(self, path: str = ".") -> tuple[Stat, ...]:
        return self._at(path, self._entries)

    def names(self, path: str) -> tuple[str, ...]:
        return self._at(path, lambda real: tuple(sorted(each.path for each in children(self.root, real))))

    def exists(self, path: str) -> bool:
        try:
            self.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def stat(self, path: str) -> Stat:
        return self._at(path, lambda real: _stat(real, self._files.stat(real)))

    def write(
        self, path: str, content: bytes | str, *, overwrite: bool = True, mode: int | None = None
    ) -> Change:
        body = as_bytes(content)
        return self._at(
            path, lambda real: self._write(real, body, overwrite=overwrite, mode=mode), is_change=True
        )

    def check_change(self, path: str) -> None:
        self._check(self.resolve(path), is_change=True)

    def check_name(self, path: str) -> None:
        self._check(self.resolve_name(path), is_change=True)

    def check_link(self, path: str, target: str) -> None:
        name = self.resolve_name(path)
        self._check(name, is_change=True)
        problem = link_problem(name, target)
        if problem:
            raise PathRefused(
                f"the symlink {name!r} {problem}", hint="use a relative target in the workspace"
            )
        check_text(target)
        destination = link_destination(name, target)
        self._check(destination, is_change=True)
        # A symlink that is there already may lead further.
        self._check(self.root.resolve(destination), is_change=True)

    def append(self, path: str, content: bytes) -> Change:
        return self._at(path, lambda real: self._append(real, content), is_change=True)

    def make_folder(self, path: str) -> None:
        self._at(path, self._files.make_folder, is_change=True)

    def delete(self, path: str, *, recursive: bool = False) -> tuple[Change, ...]:
        return self._at(
            path, lambda real: self._delete(real, recursive=recursive), is_change=True, is_name=True
        )

    def move(self, source: str, destination: str) -> tuple[Change, ...]:
        there = self.resolve(destination)
        self._check(there, is_change=True)
        return self._at(source, lambda real: self._move(real, there), is_change=True, is_name=True)

    def link_target(self, path: str) -> str | None:
        return self._files.link_target(self.resolve_name(path))

    def make_link(self, path: str, target: str, *, is_original: bool = False) -> Change:
        name = self.resolve_name(path)
        if is_original:
            self._check(name, is_change=True)
        else:
            self.check_link(path, target)
        old = self.link_target(name)
        there = self._names.find(name) if old is None else None
        if there is not None and stat.S_ISDIR(there.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        before = self._names.fingerprint(name) if there is not None else _link_fingerprint(old)
        self._files.replace_by_link(name, target)
        if there is not None:
            self._meter.record(bytes=-there.st_size, files=-1)
        return Change(
            path=name,
            kind="modified" if before else "created",
            before=before,
            after=_link_fingerprint(target),
            mode=LINK_MODE,
        )

    def remove_link(self, path: str) -> Change:
        name = self.resolve_name(path)
        self._check(name, is_change=True)
        target = self.link_target(name)
        if target is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        self._files.remove(name)
        return Change(path=name, kind="deleted", before=_link_fingerprint(target))

    def links(self) -> tuple[str, ...]:
        found = (each.path for each in walk(self.root) if each.entry.is_symlink())
        return tuple(sorted(path for path in found if self._is_listed(path)))

    def search(self, query: str, pattern: str = "**/*", *, limit: int = 1000) -> tuple[Hit, ...]:
        return search_files(self.list(pattern), self.read, query, limit=limit)

    def fingerprint(self, path: str | None = None) -> str:
        if path is None:
            return tree_fingerprint((file, self._names.fingerprint(file)) for file in self.files())
        try:
            return self._at(path, self._files.fingerprint)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return NOTHING

    def sync(self, paths: Sequence[str]) -> None:
        sync_files(self.root, paths)

    def check_room(self, *, bytes: int, files: int) -> None:
        self._meter.allow(bytes=bytes, files=files)

    def recount(self) -> None:
        self._meter.recount()

    def sweep(self) -> None:
        for found in walk(self.root):
            if is_abandoned(found.entry.name):
                with suppress(FileNotFoundError):
                    self._files.remove(found.path)

    def _check(self, real: str, *, is_change: bool) -> None:
        if is_change:
            self._protections.check_change(real, lambda each: os.path.lexists(f"{self.root.real}/{each}"))
        else:
            self._protections.check(real)

    def _at(
        self, given: str, operation: Callable[[str], _T], *, is_change: bool = False, is_name: bool = False
    ) -> _T:
        """Run an operation where a path leads. With `is_name` it concerns the name itself, which may not be a symlink."""
        path = relative(given, self._roots)
        for _ in range(_ATTEMPTS):
            self._check(path, is_change=is_change)
            try:
                return operation(path)
            except SymlinkEncountered as link:
                if is_name and link.filename == path:
                    raise PathRefused(f"{given!r} is a symlink", hint="use the path of its target") from None
                path = self.root.resolve(path)
        raise PathRefused(f"the symlinks in {given!r} keep changing")

    def _entries(self, path: str) -> tuple[Stat, ...]:
        stats: list[Stat] = []
        for found in children(self.root, path):
            entry = found.entry
            is_plain = entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)
            if is_plain and self._is_listed(found.path):
                stats.append(_stat(found.path, entry.stat(follow_symlinks=False)))
        return tuple(sorted(stats, key=lambda each: each.path))

    def _write(self, path: str, content: bytes, *, overwrite: bool, mode: int | None = None) -> Change:
        parent_and_name(path)
        old = self._files.find(path)
        if old is not None and stat.S_ISDIR(old.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if old is not None and not overwrite:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        growth = len(content) - (old.st_size if old else 0)
        self._meter.allow(bytes=growth, files=0 if old else 1)
        before = self._files.fingerprint(path) if old else None
        if overwrite:
            self._files.replace(path, content, mode=mode)
        else:
            self._files.create(path, content, mode=mode)
        self._meter.record(bytes=growth, files=0 if old else 1)
        return Change(
            path=path,
            kind="modified" if old else "created",
            before=before,
            after=fingerprint_of(content),
        )

    def _append(self, path: str, content: bytes) -> Change:
        if self._files.find(path) is None:
            return self._write(path, content, overwrite=False)
        self._meter.allow(bytes=len(content), files=0)
        before, after = self._files.append(path, content)
        self._meter.record(bytes=len(content), files=0)
        return Change(path=path, kind="modified", before=before, after=after)

    def _delete(self, path: str, *, recursive: bool) -> tuple[Change, ...]:
        found = self._names.stat(path)
        if not stat.S_ISDIR(found.st_mode):
            change = self._deletion(path)
            self._files.remove(path)
            self._meter.record(bytes=-found.st_size, files=-1)
            return (change,)
        return self._delete_folder(path, recursive=recursive)

    def _delete_folder(self, path: str, *, recursive: bool) -> tuple[Change, ...]:
        parent_and_name(path)
        if not recursive:
            try:
                self._files.remove_folder(path)
            except OSError as error:
                reason = NOT_EMPTY if error.errno == errno.ENOTEMPTY else os.strerror(error.errno or 0)
                raise OSError(error.errno, reason, path) from None
            return ()
        self._check_protections_in(path)
        everything = [(each.path, each.entry.is_dir(follow_symlinks=False)) for each in walk(self.root, path)]
        changes = [self._deletion(inner) for inner in self._all_files(path)]
        for inner, is_folder in reversed(everything):
            if is_folder:
                self._files.remove_folder(inner)
            else:
                self._files.remove(inner)
        self._files.remove_folder(path)
        self._meter.recount()
        return tuple(sorted(changes, key=lambda change: change.path))

    def _move(self, source: str, destination: str) -> tuple[Change, ...]:
        is_folder = stat.S_ISDIR(self._files.stat(source).st_mode)
        if source == destination:
            return ()
        if is_folder and is_within(destination, source):
            raise OSError(errno.EINVAL, "a folder cannot be moved into itself", source)
        if is_folder:
            self._check_protections_in(source)
            self._check_links_in(source, destination)
        gone = [self._deletion(path) for path in (self._all_files(source) if is_folder else (source,))]
        old = NOTHING if is_folder else self.fingerprint(destination)
        self._files.move(source, destination)
        self._meter.recount()
        arrived = [
            Change(
                path=destination + change.path[len(source) :],
                kind="modified" if old else "created",
                before=old or None,
                after=change.before,
            )
            for change in gone
        ]
        return (*gone, *arrived)

    def _deletion(self, path: str) -> Change:
        return Change(path=path, kind="deleted", before=self._names.fingerprint(path))

    def _check_protections_in(self, folder: str) -> None:
        for each in walk(self.root, folder):
            self._protections.check(each.path)
            if may_change_repository(each.path):
                self._check(each.path, is_change=True)

    def _check_links_in(self, source: str, destination: str) -> None:
        """Raise PathRefused if a symlink in a folder would lead out of the workspace, or to a closed path, after a move."""
        for each in walk(self.root, source):
            target = self._files.link_target(each.path) if each.entry.is_symlink() else None
            if target is None or link_problem(each.path, target):
                continue  # no symlink, or one that a guest could not have made: it leads out already
            moved = destination + each.path[len(source) :]
            if problem := link_problem(moved, target):
                raise PathRefused(f"the symlink {each.path!r} {problem} once it is {moved!r}")
            leads_to = link_destination(moved, target)
            if leads_to != link_destination(each.path, target):
                try:
                    self._check(leads_to, is_change=True)
                except PathRefused as closed:
                    raise PathRefused(
                        f"the symlink {each.path!r} is closed once it is {moved!r}: {closed}"
                    ) from None

    def _all_files(self, start: str) -> tuple[str, ...]:
        everything = [
            each.path for each in walk(self.root, start) if each.entry.is_file(follow_symlinks=False)
        ]
        return tuple(path for path in everything if self._is_listed(path))

    def _is_listed(self, path: str) -> bool:
        return is_reachable(path) and self._protections.protection_of(path) is None

    def _count(self) -> DiskUsage:
        sizes = [
            each.entry.stat(follow_symlinks=False).st_size
            for each in walk(self.root)
            if each.entry.is_file(follow_symlinks=False)
        ]
        return DiskUsage(bytes=sum(sizes), files=len(sizes))


def _link_fingerprint(target: str | None) -> str | None:
    return None if target is None else fingerprint_of(os.fsencode(target))


def _stat(path: str, found: os.stat_result) -> Stat:
    is_folder = stat.S_ISDIR(found.st_mode)
    return Stat(
        path=path,
        kind="folder" if is_folder else "file",
        size=0 if is_folder else found.st_size,
        modified_ms=found.st_mtime_ns // 1_000_000,
        mode=found.st_mode & PERMISSIONS,
    )
