"""A copy-on-write overlay over another world: writes stay in it and reads see them. Guests see proposals through it.

For each changed file it keeps the fingerprint that the base had when the file was first changed, to detect conflicts.
"""

import errno
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import NoReturn

from holdfast.core import LINK_MODE, Change, Clock, SystemClock
from holdfast.core.errors import PathRefused, QuotaExceeded
from holdfast.core.globs import compile_file_glob
from holdfast.world.contract import (
    NOT_EMPTY,
    NOTHING,
    Hit,
    NamedContent,
    Stat,
    World,
    as_bytes,
    fingerprint_of,
    tree_fingerprint,
)
from holdfast.world.host_copy import HostCopyMixin
from holdfast.world.paths.names import folders_above, is_within, parent_and_name
from holdfast.world.paths.protected import Protections
from holdfast.world.search import search_files
from holdfast.world.staging.layer import Layer, Staged

MAX_STAGED_BYTES = 256 << 20
FILE_MODE = 0o644


class Overlay(HostCopyMixin):
    """A world over a base world. Created and removed folders are kept in memory only."""

    def __init__(self, base: World, *, max_bytes: int = MAX_STAGED_BYTES, clock: Clock | None = None) -> None:
        self.base = base
        self._max_bytes = max_bytes
        self._clock = clock or SystemClock()
        self._layer = Layer()
        self._protections = Protections()

    def resolve(self, path: str) -> str:
        if not self._layer.links:
            return self.base.resolve(path)
        name = self.resolve_name(path)
        if name in self._layer.links:
            return name  # what is done with it must be about the symlink itself
        real = self.base.resolve(path)
        # A staged symlink is not followed: the policy judged the path without it.
        for each in (
            *folders_above(self.base.normal(path)),
            *folders_above(name),
            *folders_above(real),
            real,
        ):
            if each in self._layer.links:
                raise PathRefused(
                    f"{path!r} leads through the symlink {each!r}, which is not committed yet",
                    hint="use the path of its target",
                )
        return real

    def check_followed(self, path: str) -> None:
        """Raise PathRefused if a path names a symlink of the base whose change is staged, or a staged one.

        The policy judged the path as the base has it, so a call must not reach another file.
        """
        if self._layer.links and self.resolve(path) in self._layer.links:
            raise PathRefused(
                f"{path!r} is a change of a symlink, which is not committed yet",
                hint="use the path of its target, or a program",
            )

    def resolve_name(self, path: str) -> str:
        return self.base.resolve_name(path)

    def normal(self, path: str) -> str:
        return self.base.normal(path)

    def read(self, path: str, *, offset: int = 0, length: int | None = None) -> bytes:
        real = self.resolve(path)
        staged = self._layer.files.get(real)
        if staged is not None and staged.content is not None and not staged.is_link:
            return staged.content[offset : None if length is None else offset + length]
        if staged is None and not self._layer.is_removed(real) and not self._layer.has_made(real):
            with suppress(FileNotFoundError, NotADirectoryError):  # `_refuse` gives the better reason
                return self.base.read(real, offset=offset, length=length)
        return self._refuse(real)

    def list(self, pattern: str = "**/*") -> tuple[str, ...]:
        matches = compile_file_glob(pattern).expression.fullmatch
        staged = (path for path in self._layer.written() if matches(path))
        return self._seen(staged, self.base.list(pattern))

    def files(self) -> tuple[str, ...]:
        return self._seen(self._layer.written(), self.base.files())

    def entries(self, path: str = ".") -> tuple[Stat, ...]:
        folder = self.stat(path)
        if folder.kind == "file":
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder.path)
        listed = self.base.entries(folder.path) if self._base_has_folder(folder.path) else ()
        shown = {each.path: each for each in listed if not self._layer.overrides(each.path)}
        for path in self._layer.names_in(folder.path):
            found = None if path in self._layer.links else self._find(path)
            if found is not None:
                shown[path] = found
        return tuple(shown[path] for path in sorted(shown))

    def names(self, path: str) -> tuple[str, ...]:
        folder = self.stat(path).path
        listed = self.base.names(folder) if self._base_has_folder(folder) else ()
        shown = {each for each in listed if not self._layer.overrides(each)}
        return tuple(sorted(shown | self._layer.names_in(folder)))

    def exists(self, path: str) -> bool:
        return self._find(self.resolve(path)) is not None

    def stat(self, path: str) -> Stat:
        real = self.resolve(path)
        return self._find(real) or self._refuse(real)

    def write(
        self, path: str, content: bytes | str, *, overwrite: bool = True, mode: int | None = None
    ) -> Change:
        real = self.resolve(path)
        parent_and_name(real)
        there = self._find(real)
        if there is None:
            self._check_parents(real)
        elif there.kind == "folder":
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), real)
        elif not overwrite:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), real)
        kept = there.mode if there else self._mode_of_new(real)
        return self._stage(real, as_bytes(content), kept if mode is None else mode)

    def check_change(self, path: str) -> None:
        self._check_change(self.resolve(path))

    def check_name(self, path: str) -> None:
        name = self.resolve_name(path)
        self.base.check_name(name)
        if self._layer.repository_parts:
            self._protections.check_change(name, self._has)

    def check_link(self, path: str, target: str) -> None:
        self.base.check_link(self.resolve_name(path), target)

    def link_target(self, path: str) -> str | None:
        name = self.resolve_name(path)
        staged = self._layer.files.get(name)
        if staged is not None:
            return os.fsdecode(staged.content or b"") if staged.is_link else None
        return None if self._layer.is_removed(name) else self.base.link_target(name)

    def make_link(self, path: str, target: str, *, is_original: bool = False) -> Change:
        if not is_original:
            self.check_link(path, target)
        name = self.resolve_name(path)
        if name not in self._layer.links and self.link_target(name) is None:
            there = self._find(name)
            if there is not None and there.kind == "folder":
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        self._check_parents(name)
        return self._stage(name, os.fsencode(target), LINK_MODE, is_name=True)

    def remove_link(self, path: str) -> Change:
        name = self.resolve_name(path)
        if self.link_target(name) is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        change = self._stage(name, None, None, is_name=True)
        with suppress(PathRefused):
            self.make_folder(parent_and_name(name)[0])
        return change

    def links(self) -> tuple[str, ...]:
        staged = {path for path, each in self._layer.files.items() if each.is_link}
        return self._seen(staged, self.base.links())

    def links_in(self, folder: str) -> tuple[str, ...]:
        """The symlinks below a resolved folder."""
        return tuple(each for each in self.links() if is_within(each, folder))

    def _resolve_unlinked(self, path: str) -> str:
        """Where a path leads whose last name may not be a symlink."""
        real = self.resolve(path)
        if real != self.resolve_name(path):
            raise PathRefused(f"{path!r} is a symlink", hint="use the path of its target")
        return real

    def _base_link(self, name: str) -> NamedContent | None:
        """The symlink that the base has at a name itself, or None."""
        target = self.base.link_target(name)
        return None if target is None else NamedContent(os.fsencode(target), LINK_MODE)

    def _check_change(self, real: str) -> None:
        self.base.check_change(real)
        # The base does not know the staged parts of a repository.
        if self._layer.repository_parts:
            self._protections.check_change(real, self._has)

    def append(self, path: str, content: bytes) -> Change:
        real = self.resolve(path)
        return self.write(real, (self.read(real) if self.exists(real) else b"") + content)

    def make_folder(self, path: str) -> None:
        real = self.resolve(path)
        if real != ".":
            self.check_change(real)
        there = self._find(real)
        if there is not None and there.kind == "file":
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), real)
        self._check_parents(real)
        while real != "." and not self._is_folder(real):
            self._layer.make_folder(real)
            real, _ = parent_and_name(real)

    def delete(self, path: str, *, recursive: bool = False) -> tuple[Change, ...]:
        real = self._resolve_unlinked(path)
        there = self._find(real)
        if there is not None and there.kind == "file":
            changes: tuple[Change, ...] = (self._stage(real, None, None),)
        else:
            is_empty = there is not None and not self.names(real)
            # Only a folder with files needs the list of all files, which costs as much as the workspace is large.
            inside = () if is_empty else self.files_in(real)
            links = () if is_empty else self.links_in(real)
            self._check_changes(inside or (real,))
            self.stat(real)
            parent_and_name(real)
            if not recursive and not is_empty:
                raise OSError(errno.ENOTEMPTY, NOT_EMPTY, real)
            changes = (
                *(self._stage(each, None, None) for each in inside),
                *(self._stage(each, None, None, is_name=True) for each in links),
            )
            self._layer.remove_folder(real)
        with suppress(PathRefused):  # guests cannot create `.git`
            self.make_folder(parent_and_name(real)[0])  # a folder stays when its last file is deleted
        return changes

    def move(self, source: str, destination: str) -> tuple[Change, ...]:
        here, there = self._resolve_unlinked(source), self.resolve(destination)
        is_folder = self.stat(here).kind == "folder"
        if here == there:
            return ()
        if is_folder and is_within(there, here):
            raise OSError(errno.EINVAL, "a folder cannot be moved into itself", here)
        if is_folder and self.exists(there):
            if not self._is_folder(there):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), there)
            if self.entries(there):
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), there)
        moved = self.files_in(here) if is_folder else (here,)
        self._check_changes((here, there, *moved, *(there + each[len(here) :] for each in moved)))
        links = {each: self.link_target(each) or "" for each in self.links_in(here)} if is_folder else {}
        for each, target in links.items():
            try:
                self.check_link(there + each[len(here) :], target)
            except PathRefused as refused:
                raise PathRefused(f"the symlink {each!r} cannot be moved: {refused}") from None
        arrived = [
            *(
                self.write(there + each[len(here) :], self.read(each), mode=self.stat(each).mode)
                for each in moved
            ),
            *(self.make_link(there + each[len(here) :], target) for each, target in links.items()),
        ]
        for folder in self._folders_in(here) if is_folder else ():
            self.make_folder(there + folder[len(here) :])
        return (*self.delete(here, recursive=is_folder), *arrived)

    def search(self, query: str, pattern: str = "**/*", *, limit: int = 1000) -> tuple[Hit, ...]:
        return search_files(self.list(pattern), self.read, query, limit=limit)

    def fingerprint(self, path: str | None = None) -> str:
        if path is None:
            return tree_fingerprint((each, self.fingerprint(each)) for each in self.files())
        real = self.resolve(path)
        staged = self._layer.files.get(real)
        if staged is not None:
            return NOTHING if staged.content is None else fingerprint_of(staged.content)
        return NOTHING if self._layer.is_removed(real) else self.base.fingerprint(real)

    def sync(self, paths: Sequence[str]) -> None:
        self.base.sync(paths)

    def check_room(self, *, bytes: int, files: int) -> None:
        layer = self._layer
        if bytes > 0 or files > 0:
            self.base.check_room(bytes=layer.grown_bytes + bytes, files=layer.grown_files + files)

    def recount(self) -> None:
        self.base.recount()

    def sweep(self) -> None:
        self.base.sweep()

    def _check_changes(self, paths: Iterable[str]) -> None:
        for path in paths:
            self.check_change(path)

    def _has(self, path: str) -> bool:
        try:
            return self._find(path) is not None
        except PathRefused:
            return True

    def _stage(self, path: str, content: bytes | None, mode: int | None, *, is_name: bool = False) -> Change:
        """Stage a change of a resolved path. With `is_name` it may be a symlink, which is meant itself."""
        known = self._layer.files.get(path)
        is_name = is_name or path in self._layer.links
        replaced = self._base_link(path) if is_name else None
        if is_name:
            self.check_name(path)
        else:
            self._check_change(path)
        if known is not None:
            before = known.before
        else:
            before = replaced.fingerprint if replaced is not None else self.base.fingerprint(path)
        after = NOTHING if content is None else fingerprint_of(content)
        held = self._layer.held_bytes - (len(known.content or b"") if known else 0)
        if content and held + len(content) > self._max_bytes:
            raise QuotaExceeded(
                f"staged changes may have at most {self._max_bytes} bytes in total",
                hint="commit or reject staged changes",
            )
        size: int | None
        if replaced is not None:
            is_other, size = mode != replaced.mode, len(replaced.content or b"")
        else:
            is_other, size = self._has_other_mode(path, mode), self._size_in_base(path)
        is_effect = after != before or (content is not None and is_other)
        staged = Staged(content, before, mode, self._clock.now_ms(), size, replaces_link=replaced is not None)
        if content is not None:
            self.check_room(
                bytes=staged.grown_bytes - (known.grown_bytes if known else 0),
                files=staged.grown_files - (known.grown_files if known else 0),
            )
        self._put(path, staged if is_effect else None)
        return Change(
            path=path,
            kind="deleted" if content is None else "modified" if before else "created",
            before=before or None,
            after=after or None,
            is_staged=True,
            mode=mode if is_effect else None,
        )

    def _hide_emptied_folders(self) -> None:
        """Remove the folders of the base whose files are all deleted here: which of them were removed is not recorded."""
        for path, staged in self._layer.files.items():
            if staged.content is None or staged.replaces_link:
                continue
            with suppress(OSError, PathRefused):
                if self._base_has_folder(path):  # the file took its place
                    self._layer.remove_folder(path)
        deleted = [path for path, staged in self._layer.files.items() if staged.content is None]
        for folders in sorted({folders_above(path) for path in deleted}, key=len, reverse=True):
            for folder in folders:
                if self._layer.is_removed(folder):
                    continue
                if not self._is_emptied(folder):
                    break
                self._layer.remove_folder(folder)

    def _is_emptied(self, folder: str) -> bool:
        try:
            return self._base_has_folder(folder) and not self.names(folder)
        except (OSError, PathRefused):  # a file took its place, or it is closed
            return False

    def _put(self, path: str, staged: Staged | None) -> None:
        self._layer.put(path, staged)
        if staged is not None or not self._layer.is_removed(path):
            return
        if self._base_has_file(path) or self.base.link_target(path) is not None:
            self._unhide(path)

    def _unhide(self, path: str) -> None:
        """Show one file or symlink of the base in a folder that was removed here; the rest of the folder stays removed."""
        on_the_way = set(folders_above(path))
        removed = {each for each in self._layer.gone_folders if each in on_the_way}
        self._layer.gone_folders -= removed
        for folder in on_the_way:
            if any(is_within(folder, each) for each in removed):
                inside = {each.path for each in self.base.entries(folder) if each.kind == "folder"}
                self._layer.gone_folders |= inside - on_the_way

    def _mode_of_new(self, path: str) -> int | None:
        """The mode to stage. None leaves it to the base, unless the base still has a file that was deleted here."""
        return FILE_MODE if path in self._layer.files else None

    def _has_other_mode(self, path: str, mode: int | None) -> bool:
        found = None if mode is None else self._base_stat(path)
        return found is not None and found.mode != mode

    def _seen(self, staged: Iterable[str], in_base: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted({*staged, *(path for path in in_base if not self._layer.overrides(path))}))

    def _find(self, path: str) -> Stat | None:
        """What the overlay shows at a resolved path. Raises PathRefused if the base does, and for a staged symlink."""
        staged = self._layer.files.get(path)
        if staged is not None and staged.is_link:
            raise PathRefused(
                f"{path!r} is a symlink, which is not committed yet", hint="use the path of its target"
            )
        if staged is not None and staged.content is not None:
            return Stat(
                path=path,
                kind="file",
                size=len(staged.content),
                modified_ms=staged.modified_ms,
                mode=FILE_MODE if staged.mode is None else staged.mode,
            )
        in_base = None if staged is not None or self._layer.is_removed(path) else self._base_stat(path)
        if in_base is None and self._layer.has_made(path):
            return Stat(path=path, kind="folder", modified_ms=self._clock.now_ms(), mode=0o755)
        return in_base

    def _refuse(self, path: str) -> NoReturn:
        """Raise the error that explains why there is no file at a path."""
        self._find(path)  # refuses a symlink
        if self._layer.has_made(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        self._check_parents(path)
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def _is_folder(self, path: str) -> bool:
        return path == "." or self._layer.has_made(path) or self._base_has_folder(path)

    def _base_stat(self, path: str) -> Stat | None:
        try:
            return self.base.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _size_in_base(self, path: str) -> int | None:
        found = None
        with suppress(PathRefused):  # refused in the meantime: it counts as no file
            found = self._base_stat(path)
        return found.size if found is not None and found.kind == "file" else None

    def _base_has_folder(self, path: str) -> bool:
        """Whether the base has the folder and it was not removed here."""
        found = None if self._layer.is_removed(path) else self._base_stat(path)
        return found is not None and found.kind == "folder"

    def files_in(self, folder: str) -> tuple[str, ...]:
        """The files at or below a path."""
        return tuple(each for each in self.files() if is_within(each, folder))

    def _folders_in(self, folder: str) -> tuple[str, ...]:
        """A folder and all folders beneath it, including empty ones."""
        inner = [each.path for each in self.entries(folder) if each.kind == "folder"]
        return (folder, *(deeper for each in inner for deeper in self._folders_in(each)))

    def _check_parents(self, path: str) -> None:
        for folder in folders_above(path):
            staged = self._layer.files.get(folder)
            if staged.content is not None if staged else self._base_has_file(folder):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), folder)

    def _base_has_file(self, path: str) -> bool:
        try:
            found = self._base_stat(path)
        except PathRefused:
            return False  # a parent such as `.git` of `.git/HEAD`; the path itself is checked
        return found is not None and found.kind == "file"
