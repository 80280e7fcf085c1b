"""Collection: what programs changed, read from the layer. Its cost follows the changes, not the size of the workspace.

An overlay writes a deletion as a whiteout, and a folder that was replaced as opaque: nothing of the base shows below it, and
the folders below carry no mark of their own. A rename is a deletion and a creation.
"""

import hashlib
import os
import stat

from holdfast.commands.contract import CollectedChanges, FileEffect, NotCollected
from holdfast.commands.init import beneath
from holdfast.commands.layers.entries import (
    hides_base,
    names_beneath,
    open_file_beneath,
    signature_of,
    status_beneath,
)
from holdfast.commands.layers.git_credentials import holds_only_cleaned
from holdfast.commands.layers.layer import MAX_DEPTH, ShownFile, WorkspaceLayer, digest_of
from holdfast.commands.layers.scratch import GIT
from holdfast.core import LINK_MODE, Value, link_problem

MAX_FILE_BYTES = 64 << 20
MAX_CHANGES = 5000
_MAX_LINK_WORDS = 80


class _Version(Value):
    """A regular file as it is: what an effect reports."""

    digest: str
    size: int
    mode: int


def collect(layer: WorkspaceLayer) -> CollectedChanges:
    """Compare the layer with what programs were shown. Every process must be stopped. Raises OSError."""
    return _Collection(layer).run()


def read_version(top: int, path: str) -> tuple[bytes, str] | None:
    """The content and digest of a regular file beneath a folder, or of a symlink: its target. None for anything else.

    A file that is too large counts as something else.
    """
    file = open_file_beneath(top, path, max_bytes=MAX_FILE_BYTES)
    if file is None:
        target = beneath.read_link(top, path)
        return None if target is None else (os.fsencode(target), digest_of(os.fsencode(target)))
    with open(file, "rb") as opened:
        content = opened.read(MAX_FILE_BYTES + 1)
    return None if len(content) > MAX_FILE_BYTES else (content, hashlib.sha256(content).hexdigest())


class _Collection:
    """One walk over a layer."""

    def __init__(self, layer: WorkspaceLayer) -> None:
        self._layer = layer
        self._scratch_rules = layer.scratch()
        self._effects: list[FileEffect] = []
        self._scratch: list[str] = []
        self._not_collected: list[NotCollected] = []
        self._seen: set[str] = set()
        self._hiding: set[str] = set()
        self._hidden_since: set[str] = set()
        self._merged: set[str] = set()
        self._needless: set[str] = set()

    def run(self) -> CollectedChanges:
        """Walk the layer, then look for what was shown and is gone."""
        self._layer.collected = {}
        folders: list[tuple[str, str | None]] = [("", None)]
        for folder, hidden_by in folders:
            if self._is_full():
                break
            self._walk(folder, hidden_by, folders)
        for path in self._layer.shown.keys() - self._seen:
            self._check_shown(path)
        if self._layer.unchangeable:
            self._refuse(
                ".",
                f"programs cannot change {self._layer.unchangeable:,} files of other owners; there are too many to copy: "
                "make them yours, with chown or chgrp",
            )
        if self._is_full():
            self._refuse(".", f"more than {MAX_CHANGES:,} changes at once; the rest is not proposed")
        self._layer.found_hiding, self._layer.hidden_since = self._hiding, self._hidden_since
        self._layer.merged, self._layer.needless = self._merged, self._needless
        return CollectedChanges(
            effects=tuple(sorted(self._effects, key=lambda effect: effect.path)),
            scratch=tuple(sorted(self._scratch)),
            not_collected=tuple(self._not_collected),
        )

    def _is_full(self) -> bool:
        return len(self._effects) + len(self._not_collected) >= MAX_CHANGES

    def _walk(self, folder: str, hidden_by: str | None, folders: list[tuple[str, str | None]]) -> None:
        """Look at a folder; `hidden_by` is the opaque one in which it lies."""
        opened = beneath.open_own_folder(self._layer.descriptor, folder)
        try:
            names = os.listdir(opened)
            if hidden_by is None and hides_base(opened):
                hidden_by = folder
                self._hiding.add(folder)
            if hidden_by is None and self._is_over_base(folder):
                self._merged.add(folder)
            if hidden_by is not None:
                for name in names_beneath(self._layer.base, folder) - set(names):
                    self._gone(_join(folder, name), hidden_by)
            for name in names:
                if self._is_full():
                    return
                try:
                    status = os.stat(name, dir_fd=opened, follow_symlinks=False)
                except FileNotFoundError:
                    continue
                path = _join(folder, name)
                if stat.S_ISCHR(status.st_mode) and folder not in self._merged:
                    self._needless.add(path)
                self._entry(path, status, hidden_by, folders)
        finally:
            os.close(opened)

    def _is_over_base(self, folder: str) -> bool:
        return not folder or self._layer.is_base_folder(folder)

    def _entry(
        self, path: str, status: os.stat_result, hidden_by: str | None, folders: list[tuple[str, str | None]]
    ) -> None:
        mode = status.st_mode
        if stat.S_ISCHR(mode):
            if path not in self._layer.hidden:
                self._gone(path, path)
            return
        is_folder = stat.S_ISDIR(mode)
        if self._scratch_rules.covers(path, is_folder=is_folder):
            if not (is_folder and self._is_unchanged_git(path)):
                self._add_scratch(path, is_folder=is_folder)
        elif path in self._layer.hidden:
            self._refuse(path, "is hidden from commands, so they cannot write it")
        elif not _is_utf8(path):
            self._refuse(path.encode("utf-8", "backslashreplace").decode(), "has a name that is not UTF-8")
        elif is_folder:
            self._folder(path, hidden_by, folders)
        elif stat.S_ISLNK(mode) and (problem := self._link_problem(path)):
            self._refuse(path, problem)
        elif not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):
            self._refuse(path, "is not a regular file")
        elif status.st_size > MAX_FILE_BYTES:
            self._refuse(path, f"has {status.st_size:,} bytes; at most {MAX_FILE_BYTES:,} can be proposed")
        else:
            self._file(path, status)

    def _is_unchanged_git(self, path: str) -> bool:
        is_git = path == GIT or path.endswith(f"/{GIT}")
        return is_git and holds_only_cleaned(self._layer.descriptor, self._layer.base, path)

    def _folder(self, path: str, hidden_by: str | None, folders: list[tuple[str, str | None]]) -> None:
        if path.count("/") >= MAX_DEPTH:
            self._refuse(path[:200], f"is more than {MAX_DEPTH} folders deep")
            return
        shown = self._layer.shown.get(path)
        before = status_beneath(self._layer.base, path)
        # Where a deletion was shown, only its own files say what is in the folder.
        if shown.digest is not None if shown else before is not None and _is_content(before):
            self._gone(path, path)
        if before is None or not stat.S_ISDIR(before.st_mode):
            self._hiding.add(path)
        folders.append((path, hidden_by))

    def _link_problem(self, path: str) -> str:
        """Why a symlink of the layer cannot be proposed; empty if it can, or is the one of the base."""
        target = beneath.read_link(self._layer.descriptor, path) or ""
        problem = link_problem(path, target)
        if not problem or target == beneath.read_link(self._layer.base, path):
            return ""
        words = target if len(target) <= _MAX_LINK_WORDS else f"{target[:_MAX_LINK_WORDS]}..."
        return (
            f"is a link to {words!r}, which {problem}; only relative links inside the workspace are proposed"
        )

    def _file(self, path: str, status: os.stat_result) -> None:
        self._seen.add(path)
        shown = self._layer.shown.get(path)
        signature = signature_of(status)
        if signature == self._layer.cleaned.get(path) or (shown and signature == shown.signature):
            return
        if shown is None and self._layer.adopted.is_copy(path, status):
            return
        found = read_version(self._layer.descriptor, path)
        if found is None:
            self._refuse(path, "cannot be read")
            return
        now = _Version(digest=found[1], size=len(found[0]), mode=_mode_of(status))
        self._layer.collected[path] = ShownFile(
            digest=now.digest, mode=now.mode, signature=signature_of(status)
        )
        before = status_beneath(self._layer.base, path)
        if shown is None and before is not None and stat.S_ISDIR(before.st_mode):
            self._gone(path, path)  # a file took the place of a folder
            before = None
        if not self._is_same(path, now, shown, before):
            had_content = _had_content(shown, before)
            self._effects.append(
                FileEffect(
                    path=path,
                    kind="modified" if had_content else "created",
                    digest=now.digest,
                    size=now.size,
                    mode=now.mode,
                )
            )

    def _is_same(
        self, path: str, now: _Version, shown: ShownFile | None, before: os.stat_result | None
    ) -> bool:
        if shown is not None:
            return shown.digest == now.digest and shown.mode == now.mode
        if before is None or not _is_content(before):
            return False
        if before.st_size != now.size or _mode_of(before) != now.mode:
            return False
        content = read_version(self._layer.base, path)
        return content is not None and content[1] == now.digest

    def _gone(self, path: str, hidden_by: str) -> None:
        """A path of the base, or a whole folder, that programs removed; also staged files in it.

        If `hidden_by` hid it before, what was not there then was added to the base since, and no program has seen it.
        """
        self._hiding.add(hidden_by)
        was_hidden = hidden_by in self._layer.hiding
        waiting = [path]
        while waiting and not self._is_full():
            each = waiting.pop()
            status = status_beneath(self._layer.base, each)
            is_folder = status is not None and stat.S_ISDIR(status.st_mode)
            if self._scratch_rules.covers(each, is_folder=is_folder):
                self._add_scratch(each, is_folder=is_folder)
                continue
            if is_folder:
                waiting += [_join(each, name) for name in names_beneath(self._layer.base, each)]
                continue
            if each in self._seen:
                continue
            self._seen.add(each)
            shown = self._layer.shown.get(each)
            if was_hidden and shown is None:
                self._hidden_since.add(each)
            elif each in self._layer.hidden:
                self._refuse(each, "is hidden from commands, so they cannot delete it")
            elif _had_content(shown, status):
                self._effects.append(FileEffect(path=each, kind="deleted"))

    def _check_shown(self, path: str) -> None:
        """A staged file that the walk did not meet: it is gone, or lies in scratch."""
        shown = self._layer.shown[path]
        status = status_beneath(self._layer.descriptor, path)
        if status is not None and _is_content(status):
            self._file(path, status)
        elif shown.digest is not None:
            self._seen.add(path)
            self._effects.append(FileEffect(path=path, kind="deleted"))

    def _add_scratch(self, path: str, *, is_folder: bool) -> None:
        if len(self._scratch) < MAX_CHANGES:
            shown = path.encode("utf-8", "backslashreplace").decode()
            self._scratch.append(f"{shown}/" if is_folder else shown)

    def _refuse(self, path: str, because: str) -> None:
        self._not_collected.append(NotCollected(path=path, because=because))


def _had_content(shown: ShownFile | None, before: os.stat_result | None) -> bool:
    if shown is not None:
        return shown.digest is not None
    return before is not None and not stat.S_ISDIR(before.st_mode)


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_content(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)


def _mode_of(status: os.stat_result) -> int:
    return LINK_MODE if stat.S_ISLNK(status.st_mode) else status.st_mode & 0o777


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
