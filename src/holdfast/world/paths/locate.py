"""Locates the paths of a call for the policy. Accepts hostile input and never raises."""

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from holdfast.core import Location
from holdfast.core.errors import PathRefused
from holdfast.world.folder.files import PlainFiles
from holdfast.world.paths.names import GUEST_ROOTS, check_text, is_reachable, is_within, normal, relative
from holdfast.world.paths.open_beneath import BeneathRoot, SymlinkEncountered
from holdfast.world.paths.protected import REPOSITORY, Protections, repository_among, repository_of
from holdfast.world.paths.symlinks import relative_to, resolve_symlinks


class WorldPaths:
    """Locates paths as guests give them: `x`, `/workspace/x`, `/app/x`, or an absolute path of the host.

    With `guest_root=None` every absolute path is a host path, for tools that open paths themselves. Absolute entries of
    `protected` are host paths, relative ones are names in the workspace.
    """

    def __init__(
        self, root: Path, *, protected: Sequence[Path | str] = (), guest_root: str | None = "/workspace"
    ) -> None:
        self._root = BeneathRoot(Path(os.path.realpath(root)))
        self._files = PlainFiles(self._root)
        names = [str(each) for each in protected if not os.path.isabs(each)]
        self._protections = Protections(names)
        places = [os.path.realpath(each) for each in protected if os.path.isabs(each)]
        # A session's workspace is inside our protected home, which protects its siblings but not the workspace itself.
        self._places_inside = [each for each in places if is_within(each, self._root.real)]
        self._places = places
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
                if name.casefold() == REPOSITORY or self._protections.protection_of(inner) is not None:
                    return inner
        return None

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
