"""An overlay over another world: reads see it, and what is written stays in it. The view that guests have of proposals.

For each changed file it keeps the fingerprint that the base had when the file was first changed here.
"""

import errno
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from holdfast.core import Change, Clock, SystemClock
from holdfast.core.errors import PathRefused, QuotaExceeded
from holdfast.world.contract import NOT_EMPTY, Hit, Stat, World
from holdfast.world.fingerprints import NOTHING, fingerprint_of, tree_fingerprint
from holdfast.world.names import is_within, parent_and_name
from holdfast.world.patterns import compile_pattern
from holdfast.world.search import search_files

MAX_STAGED_BYTES = 256 << 20


class Staged(NamedTuple):
    """What a file shall become; content None is a deletion. `before` is the base's fingerprint when first staged."""

    content: bytes | None
    before: str
    mode: int | None
    modified_ms: int


class Overlay:
    """A world over a world. Folders made or removed in it are remembered only as long as it lives."""

    def __init__(self, base: World, *, max_bytes: int = MAX_STAGED_BYTES, clock: Clock | None = None) -> None:
        self.base = base
        self._max_bytes = max_bytes
        self._clock = clock or SystemClock()
        self._files: dict[str, Staged] = {}
        self._folders: set[str] = set()
        self._gone_folders: set[str] = set()

    def resolve(self, path: str) -> str:
        return self.base.resolve(path)

    def read(self, path: str) -> bytes:
        real = self.resolve(path)
        staged = self._files.get(real)
        if staged is not None and staged.content is not None:
            return staged.content
        if self._is_folder(real):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), real)
        self._check_parents(real)
        if staged is not None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), real)
        return self.base.read(real)

    def list(self, pattern: str = "**/*") -> tuple[str, ...]:
        matches = compile_pattern(pattern).fullmatch
        staged = {path for path, each in self._files.items() if each.content is not None and matches(path)}
        return tuple(sorted(staged.union(set(self.base.list(pattern)) - self._files.keys())))

    def files(self) -> tuple[str, ...]:
        staged = {path for path, each in self._files.items() if each.content is not None}
        return tuple(sorted(staged.union(set(self.base.files()) - self._files.keys())))

    def entries(self, path: str = ".") -> tuple[Stat, ...]:
        real = self.resolve(path)
        if not self._is_folder(real):
            self._check_parents(real)
            self.read(real)
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), real)
        in_base = self.base.entries(real) if self._base_has_folder(real) else ()
        names = {each.path for each in in_base} | self._staged_below(real)
        return tuple(self.stat(each) for each in sorted(names) if self.exists(each))

    def exists(self, path: str) -> bool:
        try:
            self.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def stat(self, path: str) -> Stat:
        real = self.resolve(path)
        staged = self._files.get(real)
        if staged is not None and staged.content is not None:
            return Stat(
                path=real,
                kind="file",
                size=len(staged.content),
                modified_ms=staged.modified_ms,
                mode=0o644 if staged.mode is None else staged.mode,
            )
        if self._is_folder(real):
            if self._base_has_folder(real):
                return self.base.stat(real)
            return Stat(path=real, kind="folder", modified_ms=self._clock.now_ms(), mode=0o755)
        self._check_parents(real)
        if staged is not None or real in self._gone_folders:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), real)
        return self.base.stat(real)

    def write(self, path: str, content: bytes, *, overwrite: bool = True, mode: int | None = None) -> Change:
        real = self.resolve(path)
        parent_and_name(real)
        if self._is_folder(real):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), real)
        self._check_parents(real)
        is_there = self.exists(real)
        if is_there and not overwrite:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), real)
        kept = mode if mode is not None else self.stat(real).mode if is_there else None
        return self._stage(real, bytes(content), kept)

    def append(self, path: str, content: bytes) -> Change:
        real = self.resolve(path)
        return self.write(real, (self.read(real) if self.exists(real) else b"") + content)

    def make_folder(self, path: str) -> None:
        real = self.resolve(path)
        if self.exists(real) and not self._is_folder(real):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), real)
        self._check_parents(real)
        if not self._is_folder(real):
            self.base.exists(real)  # refuses what the base would refuse
        while real != "." and not self._is_folder(real):
            self._folders.add(real)
            real, _ = parent_and_name(real)

    def delete(self, path: str, *, recursive: bool = False) -> tuple[Change, ...]:
        real = self.resolve(path)
        if self.stat(real).kind == "file":
            change = self._stage(real, None, None)
            with suppress(PathRefused):  # `.git` is nobody's to make
                self.make_folder(parent_and_name(real)[0])  # a folder outlives the last file in it
            return (change,)
        parent_and_name(real)
        if not recursive and self.entries(real):
            raise OSError(errno.ENOTEMPTY, NOT_EMPTY, real)
        changes = tuple(self._stage(each, None, None) for each in self._files_in(real))
        self._folders = {each for each in self._folders if not is_within(each, real)}
        self._gone_folders.add(real)
        return changes

    def move(self, source: str, destination: str) -> tuple[Change, ...]:
        here, there = self.resolve(source), self.resolve(destination)
        is_folder = self.stat(here).kind == "folder"
        if is_folder and is_within(there, here):
            raise OSError(errno.EINVAL, "a folder cannot be moved into itself", here)
        if is_folder and self.exists(there):
            if not self._is_folder(there):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), there)
            if self.entries(there):
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), there)
        moved = self._files_in(here) if is_folder else (here,)
        arrived = [
            self.write(there + each[len(here) :], self.read(each), mode=self.stat(each).mode)
            for each in moved
        ]
        if is_folder and not moved:
            self.make_folder(there)
        return (*self.delete(here, recursive=is_folder), *arrived)

    def search(self, query: str, pattern: str = "**/*", *, limit: int = 1000) -> tuple[Hit, ...]:
        return search_files(self.list(pattern), self.read, query, limit=limit)

    def fingerprint(self, path: str | None = None) -> str:
        if path is None:
            return tree_fingerprint((each, self.fingerprint(each)) for each in self.files())
        real = self.resolve(path)
        if real not in self._files:
            return self.base.fingerprint(real)
        content = self._files[real].content
        return NOTHING if content is None else fingerprint_of(content)

    def sync(self, paths: Sequence[str]) -> None:
        self.base.sync(paths)

    def sweep(self) -> None:
        self.base.sweep()

    def _stage(self, path: str, content: bytes | None, mode: int | None) -> Change:
        known = self._files.get(path)
        before = known.before if known else self.base.fingerprint(path)
        after = NOTHING if content is None else fingerprint_of(content)
        held = sum(len(each.content or b"") for name, each in self._files.items() if name != path)
        if content and held + len(content) > self._max_bytes:
            raise QuotaExceeded(
                f"staged changes may hold {self._max_bytes} bytes together",
                hint="commit or reject what is staged",
            )
        self._files.pop(path, None)
        if after != before or (content is not None and self._has_other_mode(path, mode)):
            self._files[path] = Staged(content, before, mode, self._clock.now_ms())
        return Change(
            path=path,
            kind="deleted" if content is None else "modified" if before else "created",
            before=before or None,
            after=after or None,
            is_staged=True,
            mode=mode,
        )

    def _has_other_mode(self, path: str, mode: int | None) -> bool:
        return mode is not None and self.base.stat(path).mode != mode

    def _is_folder(self, path: str) -> bool:
        if path == "." or path in self._folders or self._staged_below(path):
            return True
        return self._base_has_folder(path)

    def _base_has_folder(self, path: str) -> bool:
        """Whether the base has the folder and it was not removed here; a folder that was filled anew is there again."""
        if any(is_within(path, gone) for gone in self._gone_folders):
            return False
        return self.base.exists(path) and self.base.stat(path).kind == "folder"

    def _staged_below(self, path: str) -> set[str]:
        """The names directly in a folder that exist because of the overlay."""
        prefix = "" if path == "." else f"{path}/"
        written = (each for each, staged in self._files.items() if staged.content is not None)
        below = (each[len(prefix) :] for each in (*written, *self._folders) if each.startswith(prefix))
        return {prefix + rest.partition("/")[0] for rest in below if rest}

    def _files_in(self, folder: str) -> tuple[str, ...]:
        return tuple(each for each in self.files() if is_within(each, folder))

    def _check_parents(self, path: str) -> None:
        while path != ".":
            path, _ = parent_and_name(path)
            staged = self._files.get(path)
            is_file = staged.content is not None if staged else self._base_has_file(path)
            if is_file:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)

    def _base_has_file(self, path: str) -> bool:
        try:
            return self.base.exists(path) and self.base.stat(path).kind == "file"
        except PathRefused:
            return False  # on the way to a path that is judged itself, such as `.git` of `.git/HEAD`
