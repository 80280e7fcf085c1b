"""The upper layer of a workspace's overlay, fed by the host while it is not mounted: staged files, deletions and hidden files.

A deletion or a hidden file is a whiteout, the device 0/0 by which an overlay hides a name of the base. An ordinary user can
make one.
"""

import contextlib
import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from holdfast.commands.contract import StagedFile
from holdfast.commands.init import beneath
from holdfast.commands.layers.scratch import Scratch
from holdfast.core import Value

MAX_DEPTH = 256
OPAQUE = "user.overlay.opaque"


class ShownFile(Value):
    """What programs were shown for a path: a content, or nothing."""

    digest: str | None
    mode: int = 0
    signature: tuple[int, int, int] | None = None
    """Number, change time and size of the file in the layer. A program cannot set the change time."""


class WorkspaceLayer:
    """The layer of one workspace. `close` it."""

    def __init__(self, upper: Path, workspace: Path) -> None:
        self.workspace = workspace
        self.descriptor = os.open(upper, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.base = os.open(workspace, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.shown: dict[str, ShownFile] = {}
        self.hidden: frozenset[str] = frozenset()

    def close(self) -> None:
        """Close the descriptors; the layer stays."""
        os.close(self.descriptor)
        os.close(self.base)

    def scratch(self) -> Scratch:
        """The rules for scratch, as the layer and the base have them at this moment."""
        return Scratch(self.descriptor, self.base, workspace=self.workspace)

    def show(self, staged: Sequence[StagedFile], hidden: Collection[str]) -> None:
        """Make the layer hold exactly the staged changes, the hidden files and scratch. Raises OSError."""
        wanted = {file.path: self._wanted(file) for file in staged}
        unchanged = self._clear(wanted, frozenset(hidden))
        shown: dict[str, ShownFile] = {}
        for file in staged:
            if file.path in unchanged:
                shown[file.path] = self.shown[file.path]
            elif file.content is None:
                self._hide(file.path)
                shown[file.path] = ShownFile(digest=None)
            else:
                shown[file.path] = self._write(file.path, file.content, file.mode)
        for path in hidden:
            self._hide(path)
        self.shown, self.hidden = shown, frozenset(hidden)

    def drop_scratch(self) -> None:
        """Empty the layer, scratch included; `show` fills it again. Raises OSError."""
        for name in os.listdir(self.descriptor):
            beneath.remove_tree(self.descriptor, name)
        self.shown = {}

    def mode_of(self, path: str, mode: int | None) -> int:
        """The mode for a staged file: as given, else that of the base, else that of a new file."""
        if mode is not None:
            return stat.S_IMODE(mode) & 0o777
        found = status_beneath(self.base, path)
        return found.st_mode & 0o777 if found is not None and stat.S_ISREG(found.st_mode) else 0o644

    def _wanted(self, file: StagedFile) -> str | None:
        return (
            None
            if file.content is None
            else f"{digest_of(file.content)}:{self.mode_of(file.path, file.mode)}"
        )

    def _write(self, path: str, content: bytes, mode: int | None) -> ShownFile:
        kept = self.mode_of(path, mode)
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

    def _clear(self, wanted: dict[str, str | None], hidden: frozenset[str]) -> set[str]:
        """Remove all that is neither scratch nor wanted; returns the files that are already as wanted."""
        scratch = self.scratch()
        unchanged: set[str] = set()
        folders: list[str] = [""]
        # Folders are found before what is in them, and removed in the opposite order.
        for folder in folders:
            self._clear_folder(
                folder, folders, scratch=scratch, wanted=wanted, hidden=hidden, unchanged=unchanged
            )
        for folder in reversed(folders[1:]):
            parent, name = beneath.open_parent(self.descriptor, folder)
            try:
                with contextlib.suppress(OSError):
                    os.rmdir(name, dir_fd=parent)
            finally:
                os.close(parent)
        return unchanged

    def _clear_folder(
        self,
        folder: str,
        folders: list[str],
        *,
        scratch: Scratch,
        wanted: dict[str, str | None],
        hidden: frozenset[str],
        unchanged: set[str],
    ) -> None:
        opened = beneath.open_folder(self.descriptor, folder)
        try:
            if folder:
                self._reset_folder(opened, folder)
            for name, status in _entries(opened):
                path = f"{folder}/{name}" if folder else name
                is_folder = stat.S_ISDIR(status.st_mode)
                is_whiteout = stat.S_ISCHR(status.st_mode)
                if scratch.covers(path, is_folder=is_folder or (is_whiteout and self._is_base_folder(path))):
                    continue
                if is_folder and path.count("/") < MAX_DEPTH and path not in wanted:
                    folders.append(path)
                elif is_whiteout and (path in hidden or wanted.get(path, "") is None):
                    if path in wanted:
                        unchanged.add(path)
                elif self._is_unchanged(path, status, wanted):
                    unchanged.add(path)
                else:
                    beneath.remove_tree(opened, name)
        finally:
            os.close(opened)

    def _reset_folder(self, opened: int, folder: str) -> None:
        with contextlib.suppress(OSError):
            os.removexattr(opened, OPAQUE)
        found = status_beneath(self.base, folder)
        if found is not None and stat.S_ISDIR(found.st_mode):
            mode = stat.S_IMODE(found.st_mode)
            if stat.S_IMODE(os.fstat(opened).st_mode) != mode:
                os.fchmod(opened, mode)

    def _is_unchanged(self, path: str, status: os.stat_result, wanted: dict[str, str | None]) -> bool:
        before = self.shown.get(path)
        return (
            before is not None
            and before.digest is not None
            and before.signature == signature_of(status)
            and wanted.get(path) == f"{before.digest}:{before.mode}"
        )

    def _is_base_folder(self, path: str) -> bool:
        found = status_beneath(self.base, path)
        return found is not None and stat.S_ISDIR(found.st_mode)


def status_beneath(top: int, path: str) -> os.stat_result | None:
    """The status of what is at a path, never through a link; None if there is nothing."""
    try:
        parent, name = beneath.open_parent(top, path)
    except OSError:
        return None
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except OSError:
        return None
    finally:
        os.close(parent)


def signature_of(status: os.stat_result) -> tuple[int, int, int]:
    """What changes whenever a file changes."""
    return (status.st_ino, status.st_ctime_ns, status.st_size)


def digest_of(content: bytes) -> str:
    """SHA-256, as in effects."""
    return hashlib.sha256(content).hexdigest()


def _entries(folder: int) -> Iterable[tuple[str, os.stat_result]]:
    for name in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):
            yield name, os.stat(name, dir_fd=folder, follow_symlinks=False)
