"""The upper layer of a workspace's overlay, fed by the host while it is not mounted: staged files, deletions and hidden files.

A deletion or a hidden file is a whiteout, the device 0/0 by which an overlay hides a name of the base. An ordinary user can
make one.
"""

import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from holdfast.commands.contract import FileEffect, StagedFile
from holdfast.commands.init import beneath
from holdfast.commands.layers.entries import (
    OPAQUE,
    Signature,
    hides_base,
    names_beneath,
    signature_of,
    status_beneath,
)
from holdfast.commands.layers.foreign import AdoptedFiles
from holdfast.commands.layers.git_credentials import hide_credentials
from holdfast.commands.layers.scratch import GIT, Scratch
from holdfast.commands.layers.search import SearchResult, search_workspace
from holdfast.core import LINK_MODE, Value

MAX_DEPTH = 256
SEARCH_SHARE = 20
"""Repositories are searched again once this many times the duration of a search has passed: it costs at most a twentieth."""


class ShownFile(Value):
    """What programs were shown for a path: a content, or nothing."""

    digest: str | None
    mode: int = 0
    signature: Signature | None = None
    """Of the file in the layer."""


class WorkspaceLayer:
    """The layer of one workspace. `close` it."""

    def __init__(self, upper: Path, workspace: Path, *, git: tuple[Path, Path] | None = None) -> None:
        """`git` are the layer and the base of a git folder outside the workspace."""
        self.workspace = workspace
        self._git = None if git is None else (_open(git[0]), _open(git[1]))
        self.descriptor = _open(upper)
        self.base = _open(workspace)
        self.shown: dict[str, ShownFile] = {}
        self.collected: dict[str, ShownFile] = {}
        """Files as the last collection found them: what a caller stages of it need not be written again."""
        self.hidden: frozenset[str] = frozenset()
        self.hiding: set[str] = set()
        """Where the layer hid the base when files were last shown or collected: whiteouts and opaque folders."""
        self.found_hiding: set[str] = set()
        """The same, as the last collection found it."""
        self.hidden_since: set[str] = set()
        """Files that were added to the base where the layer hides it, as the last collection found them."""
        self.merged: set[str] = set()
        """Folders in which the base shows through, as the last collection found them."""
        self.needless: set[str] = set()
        """Whiteouts in folders that hide no folder of the base, as the last collection found them."""
        self.cleaned: dict[str, Signature] = {}
        """The signatures of cleaned copies of configurations outside `.git`: those of bare repositories."""
        self._search = SearchResult()
        """A search through the whole workspace is too slow for each command."""
        self._search_at = 0.0
        self.adopted = AdoptedFiles(self.descriptor, self.base)

    def close(self) -> None:
        """Close the descriptors; the layer stays."""
        for descriptor in (self.descriptor, self.base, *(self._git or ())):
            os.close(descriptor)

    def scratch(self) -> Scratch:
        """The rules for scratch, as the layer and the base have them at this moment."""
        return Scratch(self.descriptor, self.base, workspace=self.workspace)

    def show(self, staged: Sequence[StagedFile], hidden: Collection[str]) -> None:
        """Make the layer hold exactly the staged changes, the hidden files and scratch. Raises OSError.

        Folders stay as programs left them where the files allow it: an empty one stays, and one that was removed stays
        removed if all its files are deleted.
        """
        wanted = {file.path: self._wanted(file) for file in staged}
        cleared = _Clearing(self, wanted, frozenset(hidden)).run()
        gone = {*cleared.removed, *(path for path, content in wanted.items() if content is not None)}
        shown: dict[str, ShownFile] = {}
        # Deletions first: a staged file can take the place of a folder whose files are deleted.
        for file in sorted(staged, key=lambda each: each.content is not None):
            if file.path in cleared.unchanged:
                shown[file.path] = cleared.unchanged[file.path]
            elif file.content is not None:
                shown[file.path] = self._write(file.path, file.content, file.mode)
            else:
                if gone.isdisjoint(parents_of(file.path)) and not self._is_folder(file.path):
                    self._hide(file.path)
                shown[file.path] = ShownFile(digest=None)
        # A staged file in the place of a removed folder stays.
        removed = [path for path in cleared.removed if wanted.get(path) is None]
        for path in (*removed, *hidden):
            self._hide(path)
        self.shown, self.hidden = shown, frozenset(hidden)
        self.hiding = {*removed, *(path for path, file in shown.items() if file.digest is None)}
        self.hide_credentials()
        self.adopted.adopt(self._search.foreign_folders, self._search.foreign_files)

    def mark_collected(self, effects: Iterable[FileEffect]) -> None:
        """Count changes as shown: the next collection reports what programs change after this one."""
        # Also copies that equal the base: where it is hidden, they are what programs see.
        self.shown |= self.collected
        for effect in effects:
            self.shown[effect.path] = (
                ShownFile(digest=None) if effect.kind == "deleted" else self.collected[effect.path]
            )
        self.hiding |= self.found_hiding

    def hide_credentials(self) -> None:
        """Let programs see git's configuration without credentials. Raises OSError."""
        started = time.monotonic()
        if started >= self._search_at:
            self._search = search_workspace(self.workspace)
            ended = time.monotonic()
            self._search_at = ended + (ended - started) * SEARCH_SHARE
        self.cleaned = {}
        for folder in (".git", *self._search.git_folders):
            for path in hide_credentials(self.descriptor, self.base, folder):
                status = status_beneath(self.descriptor, path)
                if status is not None and folder.rpartition("/")[2] != GIT:
                    self.cleaned[path] = signature_of(status)
        if self._git is not None:
            hide_credentials(*self._git, "")

    @property
    def unchangeable(self) -> int:
        """How many files of other owners programs cannot change, because there are too many."""
        return self._search.left

    def drop_scratch(self) -> None:
        """Empty the layer, scratch included; `show` fills it again. Raises OSError."""
        for layer in (self.descriptor, *((self._git or ())[:1])):
            os.close(beneath.open_own_folder(layer, ""))
            for name in os.listdir(layer):
                beneath.remove_tree(layer, name)
        self.shown, self.hiding = {}, set()
        self.adopted.clear()
        self._search_at = 0.0

    def remove_needless(self, *, kept: Collection[str]) -> None:
        """Remove whiteouts that hide nothing. Every program must be stopped, and the overlay refreshed. Raises OSError.

        Where the base has no folder any more, an overlay lists the layer's one as it is: a program would find the name of a
        whiteout in it, but no file, and could not remove the folder.
        """
        for path in self.needless - set(kept):
            found = status_beneath(self.descriptor, path)
            if found is not None and stat.S_ISCHR(found.st_mode):
                beneath.remove(self.descriptor, path)

    def mode_of(self, path: str, mode: int | None) -> int:
        """The mode for a staged file: as given, else that of the base, else that of a new file."""
        if mode == LINK_MODE:
            return mode
        if mode is not None:
            return stat.S_IMODE(mode) & 0o777
        found = status_beneath(self.base, path)
        return found.st_mode & 0o777 if found is not None and stat.S_ISREG(found.st_mode) else 0o644

    def is_base_folder(self, path: str) -> bool:
        """Whether the base has a folder at a path."""
        found = status_beneath(self.base, path)
        return found is not None and stat.S_ISDIR(found.st_mode)

    def _is_folder(self, path: str) -> bool:
        """Whether a folder took the place of a deleted file; its own files say what happens to it."""
        found = status_beneath(self.descriptor, path)
        return self.is_base_folder(path) or (found is not None and stat.S_ISDIR(found.st_mode))

    def _wanted(self, file: StagedFile) -> str | None:
        return (
            None
            if file.content is None
            else f"{digest_of(file.content)}:{self.mode_of(file.path, file.mode)}"
        )

    def _write(self, path: str, content: bytes, mode: int | None) -> ShownFile:
        kept = self.mode_of(path, mode)
        if kept == LINK_MODE:
            status = beneath.write_link(self.descriptor, path, os.fsdecode(content), mode_of=self.base)
            return ShownFile(digest=digest_of(content), mode=kept, signature=signature_of(status))
        status = beneath.write_file(self.descriptor, path, content, kept, mode_of=self.base)
        return ShownFile(digest=digest_of(content), mode=kept, signature=signature_of(status))

    def _hide(self, path: str) -> None:
        """Put a whiteout over a path of the base, or remove what only the layer has."""
        if status_beneath(self.base, path) is None:
            beneath.remove(self.descriptor, path)
            return
        parent, name = beneath.open_parent(self.descriptor, path, mode_of=self.base, create=True)
        try:
            found = status_beneath(parent, name)
            if found is not None and stat.S_ISCHR(found.st_mode):
                return
            beneath.remove_tree(parent, name)
            os.mknod(name, stat.S_IFCHR, os.makedev(0, 0), dir_fd=parent)
        finally:
            os.close(parent)


class _Clearing:
    """Removes from a layer all that is neither scratch nor wanted."""

    def __init__(self, layer: WorkspaceLayer, wanted: dict[str, str | None], hidden: frozenset[str]) -> None:
        self._layer = layer
        self._wanted = wanted
        self._hidden = hidden
        self._scratch = layer.scratch()
        self.unchanged: dict[str, ShownFile] = {}
        """Files that are already as wanted."""
        self.removed: list[str] = []
        """Folders of the base that programs removed, with nothing in them that is wanted."""
        self._empty: set[str] = set()

    def run(self) -> "_Clearing":
        """Clear the layer. Raises OSError."""
        folders = [("", False)]
        # Folders are found before what is in them, and removed in the opposite order.
        for folder, is_opaque in folders:
            self._clear_folder(folder, is_opaque, folders)
        parents = {
            path[:at] for path in (*self._wanted, *self._hidden) for at, c in enumerate(path) if c == "/"
        }
        for folder, _ in reversed(folders[1:]):
            if folder not in parents and folder not in self._empty:
                beneath.remove_empty(self._layer.descriptor, folder)
        self.removed = [folder for folder in self.removed if self._is_all_deleted(folder)]
        return self

    def _clear_folder(self, folder: str, is_opaque: bool, folders: list[tuple[str, bool]]) -> None:
        opened = beneath.open_own_folder(self._layer.descriptor, folder)
        try:
            entries = list(_entries(opened))
            is_opaque = is_opaque or hides_base(opened)  # the folders below an opaque one carry no mark
            self._reset_folder(opened, folder, is_opaque, entries)
            for name, status in entries:
                path = f"{folder}/{name}" if folder else name
                if not self._is_kept(path, status):
                    beneath.remove_tree(opened, name)
                elif self._is_walked(path, status):
                    folders.append((path, is_opaque))
        finally:
            os.close(opened)

    def _is_kept(self, path: str, status: os.stat_result) -> bool:
        is_folder = stat.S_ISDIR(status.st_mode)
        is_whiteout = stat.S_ISCHR(status.st_mode)
        hides_folder = is_whiteout and self._layer.is_base_folder(path)
        if self._scratch.covers(path, is_folder=is_folder or hides_folder):
            return True
        if self._is_walked(path, status):
            return True
        replaces_folder = (
            not is_folder and self._wanted.get(path) is None and self._layer.is_base_folder(path)
        )
        if hides_folder or replaces_folder:
            self.removed.append(path)
            return False
        if is_whiteout and self._wanted.get(path, "") is None:
            self.unchanged[path] = ShownFile(digest=None)
            return True
        if is_whiteout and path in self._hidden:
            return True
        adopted = self._layer.adopted
        if path not in self._wanted and adopted.is_copy(path, status) and adopted.is_current(path):
            return True
        known = self._known(path, status)
        if known is not None:
            self.unchanged[path] = known
        return known is not None

    def _is_walked(self, path: str, status: os.stat_result) -> bool:
        """Whether a path is a folder in which some things are kept and others are not."""
        if not stat.S_ISDIR(status.st_mode) or path.count("/") >= MAX_DEPTH:
            return False
        if (
            path not in self._wanted
            and status_beneath(self._layer.base, path)
            and not self._layer.is_base_folder(path)
        ):
            return False  # a file of the base, whose deletion is not staged, shows again
        return self._wanted.get(path) is None and not self._scratch.covers(path, is_folder=True)

    def _reset_folder(
        self, opened: int, folder: str, is_opaque: bool, entries: list[tuple[str, os.stat_result]]
    ) -> None:
        """Let the base show through again, but remember what was empty and what of the base was removed."""
        names = {name for name, _ in entries}
        base = status_beneath(self._layer.base, folder) if folder else os.fstat(self._layer.base)
        if base is None or not stat.S_ISDIR(base.st_mode):
            if all(stat.S_ISCHR(status.st_mode) for _, status in entries):
                self._empty.add(folder)
            return
        if is_opaque:
            if hides_base(opened):
                os.removexattr(opened, OPAQUE)
            gone = (f"{folder}/{name}" for name in names_beneath(self._layer.base, folder) - names)
            self.removed += [path for path in gone if self._layer.is_base_folder(path)]
        mode = stat.S_IMODE(base.st_mode)
        if stat.S_IMODE(os.fstat(opened).st_mode) != mode:
            os.fchmod(opened, mode)

    def _known(self, path: str, status: os.stat_result) -> ShownFile | None:
        """The file, if it is as it was shown or collected and as it is wanted. Two names of one file become two files."""
        if status.st_nlink > 1:
            return None
        for known in (self._layer.shown.get(path), self._layer.collected.get(path)):
            if known is None or known.digest is None or known.signature != signature_of(status):
                continue
            if self._wanted.get(path) == f"{known.digest}:{known.mode}":
                return known
        return None

    def _is_all_deleted(self, folder: str) -> bool:
        """Whether every file of the base in a folder is to be deleted, and none is staged in it."""
        if any(
            content is not None and path.startswith(f"{folder}/") for path, content in self._wanted.items()
        ):
            return False
        waiting = [folder]
        while waiting:
            inner = waiting.pop()
            for name in names_beneath(self._layer.base, inner):
                path = f"{inner}/{name}"
                is_folder = self._layer.is_base_folder(path)
                if self._scratch.covers(path, is_folder=is_folder):
                    continue
                if is_folder:
                    waiting.append(path)
                elif path not in self._wanted:
                    return False
        return True


def _open(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def parents_of(path: str) -> list[str]:
    """The folders that a path lies in."""
    return [path[:at] for at, letter in enumerate(path) if letter == "/"]


def digest_of(content: bytes) -> str:
    """SHA-256, as in effects."""
    return hashlib.sha256(content).hexdigest()


def _entries(folder: int) -> Iterable[tuple[str, os.stat_result]]:
    for name in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):
            yield name, os.stat(name, dir_fd=folder, follow_symlinks=False)
