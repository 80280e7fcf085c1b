"""Locates the paths of a call for the policy. Accepts hostile input and never raises."""

import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from holdfast.core import Location
from holdfast.core.errors import PathRefused
from holdfast.world.folder.files import PlainFiles
from holdfast.world.paths.names import (
    GUEST_ROOTS,
    check_text,
    is_ordinary,
    is_reachable,
    is_within,
    normal,
    relative,
)
from holdfast.world.paths.open_beneath import BeneathRoot, SymlinkEncountered
from holdfast.world.paths.protected import (
    REPOSITORY,
    Protections,
    may_change_repository,
    repository_among,
    repository_of,
)
from holdfast.world.paths.symlinks import relative_to, resolve_symlinks
from holdfast.world.paths.walk import children

_MIN_LISTED = 16
"""Fewer paths in a folder are located one by one."""


class WorldPaths:
    """Locates paths as guests give them: `x`, `/workspace/x`, `/app/x`, or an absolute path of the host.

    With `guest_root=None` every absolute path is a host path, for tools that open paths themselves. Absolute entries of
    `protected` are host paths, relative ones are names in the workspace. `closed_files` are single files that are protected, such as
    the policy of the session.
    """

    def __init__(
        self,
        root: Path,
        *,
        protected: Sequence[Path | str] = (),
        closed_files: Sequence[Path] = (),
        guest_root: str | None = "/workspace",
    ) -> None:
        self._root = BeneathRoot(Path(os.path.realpath(root)))
        self._files = PlainFiles(self._root)
        names = [str(each) for each in protected if not os.path.isabs(each)]
        self._protections = Protections(names)
        places = [os.path.realpath(each) for each in protected if os.path.isabs(each)]
        # A session's workspace is inside our protected home, which protects its siblings but not the workspace itself.
        self._places_inside = [each for each in places if is_within(each, self._root.real)]
        self._places = places
        self._closed_files = frozenset(os.path.realpath(each) for each in closed_files)
        guest_roots = () if guest_root is None else (*GUEST_ROOTS, guest_root)
        self._roots = (*guest_roots, self._root.real)

    def locate(self, given: str) -> Location:
        """Where a path leads. A location with a `problem` must not be used."""
        try:
            return self._locate(given)
        except PathRefused as refused:
            return Location(given=_showable(given), problem=str(refused))
        except OSError as error:
            return Location(given=_showable(given), problem=os.strerror(error.errno or 0))

    def locate_name(self, given: str) -> Location:
        """Where a path is whose last name is meant itself, even if it is a symlink."""
        try:
            path = relative(given, self._roots)
            if not self._root.is_symlink(path):
                return self.locate(given)
        except SymlinkEncountered:
            return Location(
                given=_showable(given), problem=f"{_showable(given)!r} is reached through a symlink"
            )
        except PathRefused as refused:
            return Location(given=_showable(given), problem=str(refused))
        except OSError as error:
            return Location(given=_showable(given), problem=os.strerror(error.errno or 0))
        return self._at(given, path, f"{self._root.real}/{path}", problem=None)

    def closed_below(self, location: Location) -> str | None:
        """What is closed to changes in a folder: a repository, a protected name, or more than can be looked at."""
        count = 0
        for folder, names in _folders_below(location.real):
            count += len(names)
            if count > MAX_WALKED:
                return f"more than {MAX_WALKED:,} files"
            path = folder[len(self._root.real) + 1 :] if is_within(folder, self._root.real) else folder[1:]
            if repository_among(names):
                return path or "."
            for name in names:
                inner = f"{path}/{name}" if path else name
                is_closed = f"{folder.rstrip('/')}/{name}" in self._closed_files
                if (
                    is_closed
                    or name.casefold() == REPOSITORY
                    or self._protections.protection_of(inner) is not None
                ):
                    return inner
        return None

    def locate_all(self, given: Sequence[str]) -> list[Location]:
        """Where many paths lead, each as `locate` says. A folder with many of them is read once, not file by file."""
        counts = Counter(_folder_of(path) for path in given)
        folders: dict[str, _ListedFolder] = {}
        for folder, count in counts.items():
            if count >= _MIN_LISTED and (listed := self._list_folder(folder)) is not None:
                folders[folder] = listed
        return [self._locate_listed(path, folders) or self.locate(path) for path in given]

    def _list_folder(self, folder: str) -> "_ListedFolder | None":
        """The plain files of a folder; None if its path has symlinks or cannot be used."""
        location = self.locate(folder)
        if location.problem is not None or location.inside != folder:
            return None
        try:
            names = frozenset(
                found.entry.name for found in children(self._root, folder) if _is_plain_file(found.entry)
            )
        except OSError:
            return None
        return _ListedFolder(names, location.read_only)

    def _locate_listed(self, path: str, folders: "dict[str, _ListedFolder]") -> Location | None:
        """The location of a plain file in a folder that was listed, or None."""
        folder, _, name = path.rpartition("/")
        listed = folders.get(folder or ".")
        if listed is None or name not in listed.names:
            return None
        # The name itself could make its folder a repository.
        if not is_ordinary(path) or may_change_repository(path):
            return None
        real = f"{self._root.real}/{path}"
        return Location(
            given=path,
            real=real,
            inside=path,
            protected=self._protection_of(path, real),
            read_only=listed.repository,
        )

    def _locate(self, given: str) -> Location:
        try:
            path = relative(given, self._roots)
        except PathRefused:
            if not given.startswith("/"):
                raise
            return self._locate_on_host(given)
        try:
            return self._locate_inside(given, path)
        except SymlinkEncountered:
            return self._resolved(given, resolve_symlinks(f"{self._root.real}/{path}"))

    def _locate_inside(self, given: str, path: str) -> Location:
        """The location of a path without symlinks. Raises SymlinkEncountered."""
        real = self._root.real if path == "." else f"{self._root.real}/{path}"
        problem = None
        try:
            self._files.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except PathRefused as refused:
            problem = str(refused)
        return self._at(given, path, real, problem=problem)

    def _at(self, given: str, path: str, real: str, *, problem: str | None) -> Location:
        return Location(
            given=given,
            real=real,
            inside=path,
            protected=self._protection_of(path, real),
            problem=problem,
            read_only=repository_of(path, lambda each: os.path.lexists(f"{self._root.real}/{each}")),
        )

    def _locate_on_host(self, given: str) -> Location:
        check_text(given)
        return self._resolved(given, resolve_symlinks("/" + normal(given.lstrip("/") or ".")))

    def _resolved(self, given: str, real: str) -> Location:
        inside = relative_to(real, self._root.real)
        if inside is not None:
            return self._locate_inside(given, inside)
        return Location(
            given=given,
            real=real,
            protected=self._protection_of(None, real),
            problem=_kind_problem(real) or _name_problem(real),
            read_only=repository_of(real.strip("/") or ".", lambda each: os.path.lexists(f"/{each}")),
        )

    def _protection_of(self, inside: str | None, real: str) -> str | None:
        if real in self._closed_files:
            return real
        for place in self._places if inside is None else self._places_inside:
            if is_within(real, place) or is_within(place, real):
                return place
        return self._protections.protection_of(real.strip("/") if inside is None else inside)


MAX_WALKED = 1_000_000
"""Entries of a folder that are looked at before a call that takes the whole folder along. A larger one counts as closed."""


def _folders_below(root: str) -> Iterator[tuple[str, list[str]]]:
    """Each folder beneath a root, with the names in it, without following symlinks. A folder that cannot be read is skipped:
    what it contains is out of reach for its user too."""
    waiting = [root]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                found = {entry.name: entry.is_dir(follow_symlinks=False) for entry in entries}
        except OSError:
            continue
        yield folder, list(found)
        waiting += [f"{folder.rstrip('/')}/{name}" for name, is_folder in found.items() if is_folder]


class _ListedFolder(NamedTuple):
    """The plain files of a folder without symlinks, and the repository that it is part of."""

    names: frozenset[str]
    repository: str | None


def _folder_of(path: str) -> str:
    return path.rpartition("/")[0] or "."


def _is_plain_file(entry: "os.DirEntry[str]") -> bool:
    """Whether the location of a file needs no second look: it is regular and has no other hard link."""
    return entry.is_file(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_nlink == 1


def _kind_problem(real: str) -> str | None:
    try:
        found = os.lstat(real)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode):
        return None
    return f"{real!r} is not a regular file or folder"


def _name_problem(real: str) -> str | None:
    return None if is_reachable(real.strip("/") or ".") else f"{real!r} is not a path that can be shown"


def _showable(given: str) -> str:
    """The path with invalid Unicode escaped, so that it can be recorded."""
    return given.encode("utf-8", "backslashreplace").decode()
