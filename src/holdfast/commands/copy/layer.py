"""A copy of a workspace in which programs work, kept equal to base plus staged files between commands."""

import contextlib
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from holdfast.commands.contract import CollectedChanges, FileEffect, NotCollected, StagedFile
from holdfast.commands.git.clean_config import clean_git_config
from holdfast.commands.init import beneath
from holdfast.commands.layers.collect import MAX_CHANGES, MAX_FILE_BYTES, read_version
from holdfast.commands.layers.entries import names_beneath, signature_of, status_beneath
from holdfast.commands.layers.git_credentials import is_repository
from holdfast.commands.layers.layer import digest_of
from holdfast.commands.layers.scratch import Scratch
from holdfast.core import LINK_MODE, Value, link_problem

_GIT_CONFIG = re.compile(r"(^|/)\.git/(modules/.+/)?config(\.worktree)?$")


class _Shown(Value):
    """A file as programs were shown it."""

    digest: str
    mode: int
    signature: tuple[int, int, int]
    source: tuple[int, int, int] | None
    """The signature of the base's file that it was copied from; None if it is staged."""


class CopyLayer:
    """The copy of one workspace. `close` it."""

    def __init__(self, folder: Path, workspace: Path) -> None:
        self.workspace = workspace
        self.descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.base = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._shown: dict[str, _Shown] = {}
        self._hidden: frozenset[str] = frozenset()

    def close(self) -> None:
        """Close the descriptors; the copy stays."""
        os.close(self.descriptor)
        os.close(self.base)

    def show(self, staged: Sequence[StagedFile], hidden: Collection[str]) -> None:
        """Make the copy hold base plus `staged` without the `hidden` files; scratch stays. Raises OSError."""
        wanted = {file.path: file for file in staged}
        scratch = self._scratch()
        shown: dict[str, _Shown] = {}
        for folder in _folders(self.base):
            # Also empty ones: git does not take a folder without them for a repository.
            os.close(beneath.open_folder(self.descriptor, folder, mode_of=self.base, create=True))
        for path, status in _files(self.base):
            is_content = stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)
            if path in wanted or path in hidden or not is_content:
                continue
            kept = self._kept(path, status)
            if kept is None and scratch.covers_any_parent(path) and status_beneath(self.descriptor, path):
                continue
            shown[path] = kept or self._copy(path, status)
        for file in staged:
            if file.content is not None:
                shown[file.path] = self._write(file.path, file.content, file.mode)
        for path, _ in list(_files(self.descriptor)):
            if path not in shown and (
                path in hidden or path in wanted or not scratch.covers_any_parent(path)
            ):
                beneath.remove(self.descriptor, path)
        self._shown, self._hidden = shown, frozenset(hidden)

    def collect(self) -> CollectedChanges:
        """What programs changed in the copy. Every process must be stopped. Raises OSError."""
        scratch = self._scratch()
        effects: list[FileEffect] = []
        said: list[NotCollected] = []
        ignored: set[str] = set()
        seen: set[str] = set()
        for path, status in _files(self.descriptor):
            if len(effects) + len(said) >= MAX_CHANGES:
                said.append(NotCollected(path=".", because=f"more than {MAX_CHANGES:,} changes at once"))
                break
            seen.add(path)
            shown = self._shown.get(path)
            if shown is not None and shown.signature == signature_of(status):
                continue
            is_staged = shown is not None and shown.source is None
            if not is_staged and scratch.covers_any_parent(path):
                ignored.add(path)
                continue
            found = self._judge(path, status, shown)
            if isinstance(found, FileEffect):
                effects.append(found)
            elif found is not None:
                said.append(found)
        gone = [path for path in self._shown.keys() - seen if not scratch.covers_any_parent(path)]
        effects += [FileEffect(path=path, kind="deleted") for path in gone[: MAX_CHANGES - len(effects)]]
        return CollectedChanges(
            effects=tuple(sorted(effects, key=lambda effect: effect.path)),
            scratch=tuple(sorted(ignored)[:MAX_CHANGES]),
            not_collected=tuple(said),
        )

    def mark_collected(self, effects: Iterable[FileEffect]) -> None:
        """Count changes as shown: the next collection reports what programs change after this one."""
        for effect in effects:
            status = status_beneath(self.descriptor, effect.path)
            if effect.kind == "deleted" or status is None:
                self._shown.pop(effect.path, None)
            else:
                mode = LINK_MODE if stat.S_ISLNK(status.st_mode) else status.st_mode & 0o777
                self._shown[effect.path] = _Shown(
                    digest=effect.digest, mode=mode, signature=signature_of(status), source=None
                )

    def drop_scratch(self) -> None:
        """Empty the copy; `show` fills it again. Raises OSError."""
        os.close(beneath.open_own_folder(self.descriptor, ""))
        for name in os.listdir(self.descriptor):
            beneath.remove_tree(self.descriptor, name)
        self._shown = {}

    def _scratch(self) -> Scratch:
        return Scratch(self.descriptor, self.base, workspace=self.workspace)

    def _judge(
        self, path: str, status: os.stat_result, shown: _Shown | None
    ) -> FileEffect | NotCollected | None:
        if path in self._hidden:
            return NotCollected(path=path, because="is hidden from commands, so they cannot write it")
        is_link = stat.S_ISLNK(status.st_mode)
        if is_link and (problem := link_problem(path, beneath.read_link(self.descriptor, path) or "")):
            return NotCollected(
                path=path,
                because=f"is a link, which {problem}; only relative links inside the workspace are proposed",
            )
        if not (is_link or stat.S_ISREG(status.st_mode)) or status.st_size > MAX_FILE_BYTES:
            return NotCollected(path=path, because="is not a regular file, or too large to be proposed")
        found = read_version(self.descriptor, path)
        if found is None:
            return NotCollected(path=path, because="cannot be read")
        mode = LINK_MODE if is_link else status.st_mode & 0o777
        if shown is not None and shown.digest == found[1] and shown.mode == mode:
            return None
        return FileEffect(
            path=path,
            kind="created" if shown is None else "modified",
            digest=found[1],
            size=len(found[0]),
            mode=mode,
        )

    def _kept(self, path: str, status: os.stat_result) -> _Shown | None:
        """What was shown, if neither the base nor the copy changed since."""
        shown = self._shown.get(path)
        now = status_beneath(self.descriptor, path)
        if shown is None or now is None or shown.signature != signature_of(now):
            return None
        return shown if shown.source == signature_of(status) else None

    def _copy(self, path: str, status: os.stat_result) -> _Shown:
        if stat.S_ISLNK(status.st_mode):
            target = beneath.read_link(self.base, path) or ""
            return self._write_link(path, os.fsencode(target), source=signature_of(status))
        content = _read_all(self.base, path)
        if _GIT_CONFIG.search(path) or self._is_bare_config(path):
            content = clean_git_config(content)
        mode = status.st_mode & 0o777
        written = beneath.write_file(self.descriptor, path, content, mode, mode_of=self.base)
        return _Shown(
            digest=digest_of(content), mode=mode, signature=signature_of(written), source=signature_of(status)
        )

    def _is_bare_config(self, path: str) -> bool:
        folder, _, name = path.rpartition("/")
        return name == "config" and is_repository(names_beneath(self.base, folder))

    def _write(self, path: str, content: bytes, mode: int | None) -> _Shown:
        before = status_beneath(self.base, path)
        kept = 0o644 if before is None or not stat.S_ISREG(before.st_mode) else before.st_mode & 0o777
        kept = kept if mode is None else mode & 0o777
        if mode == LINK_MODE:
            return self._write_link(path, content, source=None)
        written = beneath.write_file(self.descriptor, path, content, kept, mode_of=self.base)
        return _Shown(digest=digest_of(content), mode=kept, signature=signature_of(written), source=None)

    def _write_link(self, path: str, target: bytes, *, source: tuple[int, int, int] | None) -> _Shown:
        written = beneath.write_link(self.descriptor, path, os.fsdecode(target), mode_of=self.base)
        return _Shown(
            digest=digest_of(target), mode=LINK_MODE, signature=signature_of(written), source=source
        )


def _files(top: int) -> Iterator[tuple[str, os.stat_result]]:
    """All entries beneath a folder that are not folders, with their status, never through a link."""
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            opened = beneath.open_folder(top, folder)
        except OSError:
            continue
        try:
            for name in os.listdir(opened):
                with contextlib.suppress(OSError):
                    status = os.stat(name, dir_fd=opened, follow_symlinks=False)
                    path = f"{folder}/{name}" if folder else name
                    if stat.S_ISDIR(status.st_mode):
                        waiting.append(path)
                    else:
                        yield path, status
        finally:
            os.close(opened)


def _folders(top: int) -> Iterator[str]:
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        yield folder
        with contextlib.suppress(OSError):
            opened = beneath.open_folder(top, folder)
            try:
                names = [name for name in os.listdir(opened) if beneath.is_folder(opened, name)]
            finally:
                os.close(opened)
            waiting += [f"{folder}/{name}" if folder else name for name in names]


def _read_all(top: int, path: str) -> bytes:
    parent, name = beneath.open_parent(top, path)
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    finally:
        os.close(parent)
    with open(file, "rb") as opened:
        return opened.read()
