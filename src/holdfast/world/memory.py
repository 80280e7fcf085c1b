"""A world in memory: the fake of `FolderWorld`, for tests and for sessions that leave nothing on disk."""

import errno
import os
from collections.abc import Sequence
from typing import NamedTuple

from holdfast.core import Change, Clock, SystemClock
from holdfast.core.errors import PathRefused
from holdfast.core.globs import compile_file_glob
from holdfast.world.contract import NOT_EMPTY, NOTHING, Hit, Stat, as_bytes, fingerprint_of, tree_fingerprint
from holdfast.world.folder.quota import DiskUsage, Quota, UsageMeter
from holdfast.world.host_copy import HostCopyMixin
from holdfast.world.paths.names import is_within, parent_and_name, relative
from holdfast.world.paths.protected import Protections
from holdfast.world.search import search_files


class _File(NamedTuple):
    content: bytes
    modified_ms: int
    mode: int = 0o644


class MemoryWorld(HostCopyMixin):
    """Files in a dictionary. It has no symlinks."""

    def __init__(
        self, files: dict[str, bytes] | None = None, *, quota: Quota | None = None, clock: Clock | None = None
    ) -> None:
        self._clock = clock or SystemClock()
        self._files: dict[str, _File] = {}
        self._folders: dict[str, int] = {".": self._clock.now_ms()}
        self._protections = Protections()
        self._meter = UsageMeter(quota, self._count)
        for path, content in (files or {}).items():
            self._write(relative(path), content)

    def resolve(self, path: str) -> str:
        return relative(path)

    def resolve_name(self, path: str) -> str:
        return relative(path)

    def normal(self, path: str) -> str:
        return relative(path)

    def check_name(self, path: str) -> None:
        self.check_change(path)

    def check_link(self, path: str, target: str) -> None:
        raise PathRefused(f"{path!r} cannot be a symlink: files in memory have none")

    def link_target(self, path: str) -> str | None:
        return None

    def make_link(self, path: str, target: str, *, is_original: bool = False) -> Change:
        self.check_link(path, target)
        raise AssertionError("unreachable: every symlink is refused")

    def remove_link(self, path: str) -> Change:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def links(self) -> tuple[str, ...]:
        return ()

    def read(self, path: str, *, offset: int = 0, length: int | None = None) -> bytes:
        content = self._file(self._checked(path)).content
        return content[offset : None if length is None else offset + length]

    def list(self, pattern: str = "**/*") -> tuple[str, ...]:
        matches = compile_file_glob(pattern).expression.fullmatch
        return tuple(path for path in self.files() if matches(path))

    def files(self) -> tuple[str, ...]:
        return tuple(sorted(self._files))

    def entries(self, path: str = ".") -> tuple[Stat, ...]:
        shown = (each for each in self.names(path) if self._protections.protection_of(each) is None)
        return tuple(self.stat(each) for each in shown)

    def names(self, path: str) -> tuple[str, ...]:
        folder = self._checked(path)
        if folder in self._files:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder)
        if folder not in self._folders:
            self._check_parents(folder)
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)
        everything = (each for each in (*self._files, *self._folders) if each != ".")
        return tuple(sorted(each for each in everything if parent_and_name(each)[0] == folder))

    def exists(self, path: str) -> bool:
        checked = self._checked(path)
        return checked in self._files or checked in self._folders

    def stat(self, path: str) -> Stat:
        checked = self._checked(path)
        if checked in self._folders:
            return Stat(path=checked, kind="folder", modified_ms=self._folders[checked], mode=0o755)
        file = self._file(checked)
        return Stat(
            path=checked,
            kind="file",
            size=len(file.content),
            modified_ms=file.modified_ms,
            mode=file.mode,
        )

    def write(
        self, path: str, content: bytes | str, *, overwrite: bool = True, mode: int | None = None
    ) -> Change:
        return self._write(self._changeable(path), as_bytes(content), overwrite=overwrite, mode=mode)

    def check_change(self, path: str) -> None:
        self._changeable(path)

    def _write(self, checked: str, body: bytes, *, overwrite: bool = True, mode: int | None = None) -> Change:
        parent, _ = parent_and_name(checked)
        if checked in self._folders:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), checked)
        old = self._files.get(checked)
        if old is not None and not overwrite:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), checked)
        growth = len(body) - (len(old.content) if old else 0)
        self._meter.allow(bytes=growth, files=0 if old else 1)
        self._make_folder(parent)
        kept = mode if mode is not None else old.mode if old else 0o644
        self._files[checked] = _File(body, self._clock.now_ms(), kept)
        self._meter.record(bytes=growth, files=0 if old else 1)
        return Change(
            path=checked,
            kind="modified" if old else "created",
            before=fingerprint_of(old.content) if old else None,
            after=fingerprint_of(body),
        )

    def append(self, path: str, content: bytes) -> Change:
        checked = self._changeable(path)
        old = self._file(checked).content if self.exists(checked) else b""
        return self.write(checked, old + content)

    def make_folder(self, path: str) -> None:
        self._make_folder(self._changeable(path))

    def delete(self, path: str, *, recursive: bool = False) -> tuple[Change, ...]:
        checked = self._changeable(path)
        self._check_changes_in(checked)
        if checked in self._folders:
            parent_and_name(checked)
            if not recursive and self.entries(checked):
                raise OSError(errno.ENOTEMPTY, NOT_EMPTY, checked)
        else:
            self._file(checked)
        gone = sorted(each for each in self._files if is_within(each, checked))
        changes = tuple(
            Change(path=each, kind="deleted", before=fingerprint_of(self._files[each].content))
            for each in gone
        )
        self._files = {each: file for each, file in self._files.items() if each not in set(gone)}
        self._folders = {each: ms for each, ms in self._folders.items() if not is_within(each, checked)}
        self._meter.recount()
        return changes

    def move(self, source: str, destination: str) -> tuple[Change, ...]:
        here, there = self._changeable(source), self._changeable(destination)
        self._check_changes_in(here)
        if here not in self._folders:
            self._file(here)
        if here == there:
            return ()
        if here in self._folders and is_within(there, here):
            raise OSError(errno.EINVAL, "a folder cannot be moved into itself", here)
        if there in self._folders and any(
            each != there and is_within(each, there) for each in (*self._files, *self._folders)
        ):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), there)
        if here in self._folders and there in self._files:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), there)
        if here in self._files and there in self._folders:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), there)
        self._make_folder(parent_and_name(there)[0])
        moved = {each: self._files[each] for each in self._files if is_within(each, here)}
        folders = [each for each in self._folders if is_within(each, here)]
        gone = self.delete(here, recursive=True)
        for folder in folders:
            self._folders[there + folder[len(here) :]] = self._clock.now_ms()
        arrived = []
        for each, file in moved.items():
            place = there + each[len(here) :]
            arrived.append(self.write(place, file.content, mode=file.mode))
        return (*gone, *arrived)

    def search(self, query: str, pattern: str = "**/*", *, limit: int = 1000) -> tuple[Hit, ...]:
        return search_files(self.list(pattern), self.read, query, limit=limit)

    def fingerprint(self, path: str | None = None) -> str:
        if path is None:
            return tree_fingerprint(
                (each, fingerprint_of(file.content)) for each, file in self._files.items()
            )
        checked = self._checked(path)
        return fingerprint_of(self._files[checked].content) if checked in self._files else NOTHING

    def sync(self, paths: Sequence[str]) -> None:
        """Nothing to do: memory is not durable."""

    def check_room(self, *, bytes: int, files: int) -> None:
        self._meter.allow(bytes=bytes, files=files)

    def recount(self) -> None:
        """Nothing to do: no other process can change memory."""

    def sweep(self) -> None:
        """Nothing to do: there are no scratch files in memory."""

    def _checked(self, given: str) -> str:
        path = relative(given)
        self._protections.check(path)
        return path

    def _changeable(self, given: str) -> str:
        path = self._checked(given)
        self._protections.check_change(path, self._has)
        return path

    def _check_changes_in(self, folder: str) -> None:
        for each in (*self._files, *self._folders):
            if each != "." and is_within(each, folder):
                self._protections.check_change(each, self._has)

    def _has(self, path: str) -> bool:
        return path in self._files or path in self._folders

    def _file(self, path: str) -> _File:
        if path in self._folders:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if path in self._files:
            return self._files[path]
        self._check_parents(path)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def _check_parents(self, path: str) -> None:
        while path != ".":
            path, _ = parent_and_name(path)
            if path in self._files:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)

    def _make_folder(self, path: str) -> None:
        if path in self._files:
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        self._check_parents(path)
        while path not in self._folders:
            self._folders[path] = self._clock.now_ms()
            path, _ = parent_and_name(path)

    def _count(self) -> DiskUsage:
        return DiskUsage(
            bytes=sum(len(file.content) for file in self._files.values()), files=len(self._files)
        )
