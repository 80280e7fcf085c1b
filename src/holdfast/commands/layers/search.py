"""The search through a workspace for what programs must see otherwise than it is: git configurations, and files of other owners."""

import os
from pathlib import Path

from holdfast.commands.layers.git_credentials import is_repository
from holdfast.commands.layers.scratch import GIT, USUALLY_IGNORED
from holdfast.core import Value

MAX_FOLDERS = 1_000_000
MAX_FOREIGN_FILES = 20_000
MAX_FOREIGN_BYTES = 256 << 20


class SearchResult(Value):
    """What a search found."""

    git_folders: tuple[str, ...] = ()
    """Of nested repositories, nearest first: `.git`, and bare repositories."""
    foreign_folders: tuple[str, ...] = ()
    """Folders of another user or group than the person's own."""
    foreign_files: tuple[str, ...] = ()
    """Files of another owner that the person may write."""
    left: int = 0
    """How many such files are beyond the limits."""


def search_workspace(workspace: Path) -> SearchResult:
    """Search the folders of a workspace. Blocks."""
    return _Search(workspace).run()


class _Search:
    """One walk, one listing for each folder."""

    def __init__(self, workspace: Path) -> None:
        self._root = str(workspace)
        self._owner = (os.geteuid(), os.getegid())
        self._git_folders: list[str] = []
        self._foreign_folders: list[str] = []
        self._foreign_files: list[str] = []
        self._left = self._bytes = 0

    def run(self) -> SearchResult:
        # What is installed or built comes last: the limits are for the project's own files.
        later: list[tuple[str, bool]] = []
        self._walk([("", True)], later)
        self._walk(later, later)
        return SearchResult(
            git_folders=tuple(self._git_folders),
            foreign_folders=tuple(self._foreign_folders),
            foreign_files=tuple(self._foreign_files),
            left=self._left,
        )

    def _walk(self, waiting: list[tuple[str, bool]], later: list[tuple[str, bool]]) -> None:
        """Look at folders, nearest first. Each comes with whether its files may belong to others."""
        for folder, has_foreign in waiting:
            try:
                with os.scandir(f"{self._root}/{folder}") as entries:
                    found = list(entries)
            except OSError:
                continue
            inner = [entry for entry in found if entry.is_dir(follow_symlinks=False)]
            is_inside_git = f"/{GIT}/" in f"/{folder}/"
            if folder and not is_inside_git:
                self._note_repository(folder, found, inner)
            if has_foreign:
                self._note_files(folder, found)
            free = MAX_FOLDERS - len(waiting)
            for entry in inner[:free]:
                path = f"{folder}/{entry.name}" if folder else entry.name
                is_foreign = self._is_foreign(entry)
                if is_foreign:
                    self._foreign_folders.append(path)
                # Where git's own folder belongs to the person, everything in it does.
                if is_foreign or not (is_inside_git or entry.name == GIT):
                    (later if entry.name in USUALLY_IGNORED else waiting).append((path, is_foreign))

    def _note_repository(
        self, folder: str, found: "list[os.DirEntry[str]]", inner: "list[os.DirEntry[str]]"
    ) -> None:
        if any(entry.name == GIT for entry in inner):
            self._git_folders.append(f"{folder}/{GIT}")
        elif is_repository({entry.name for entry in found}):
            self._git_folders.append(folder)

    def _note_files(self, folder: str, found: "list[os.DirEntry[str]]") -> None:
        """Look at the owner of each file. Only in foreign folders and at the top: a status for every file would be slow."""
        if f"/{GIT}/objects/" in f"/{folder}/":
            return  # never changed once written
        for entry in found:
            if not entry.is_file(follow_symlinks=False) or not self._is_foreign(entry):
                continue
            path = f"{folder}/{entry.name}" if folder else entry.name
            if not os.access(f"{self._root}/{path}", os.W_OK):
                continue
            self._bytes += entry.stat(follow_symlinks=False).st_size
            if len(self._foreign_files) >= MAX_FOREIGN_FILES or self._bytes > MAX_FOREIGN_BYTES:
                self._left += 1
            else:
                self._foreign_files.append(path)

    def _is_foreign(self, entry: "os.DirEntry[str]") -> bool:
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            return False
        return (status.st_uid, status.st_gid) != self._owner
