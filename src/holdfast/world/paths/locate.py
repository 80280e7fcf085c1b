"""Where the paths in a call lead, for the policy to judge. It answers for hostile input too, and never raises."""

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from holdfast.core import Location
from holdfast.core.errors import PathRefused
from holdfast.world.folder.files import PlainFiles
from holdfast.world.paths.names import GUEST_ROOTS, check_text, is_within, normal, relative
from holdfast.world.paths.open_beneath import BeneathRoot, SymlinkEncountered
from holdfast.world.paths.protected import Protections
from holdfast.world.paths.symlinks import relative_to, resolve_symlinks


class WorldPaths:
    """Locates paths as guests give them: `x`, `/workspace/x`, `/app/x`, or an absolute path of the host.

    With `guest_root=None` an absolute path is always one of the host: for tools that open paths themselves.
    Absolute entries of `protected` are places on the host, relative ones are names in the workspace.
    """

    def __init__(
        self, root: Path, *, protected: Sequence[Path | str] = (), guest_root: str | None = "/workspace"
    ) -> None:
        self._root = BeneathRoot(Path(os.path.realpath(root)))
        self._files = PlainFiles(self._root)
        names = [str(each) for each in protected if not os.path.isabs(each)]
        self._protections = Protections(names)
        places = [os.path.realpath(each) for each in protected if os.path.isabs(each)]
        # The workspace of a session lies in our own folder; that protects what is beside it, not what is in it.
        self._places_inside = [each for each in places if is_within(each, self._root.real)]
        self._places = places
        guest_roots = () if guest_root is None else (*GUEST_ROOTS, guest_root)
        self._roots = (*guest_roots, self._root.real)

    def locate(self, given: str) -> Location:
        """Where a path leads. A `problem` is a reason to do nothing with it."""
        try:
            return self._locate(given)
        except PathRefused as refused:
            return Location(given=_showable(given), problem=str(refused))
        except OSError as error:
            return Location(given=_showable(given), problem=os.strerror(error.errno or 0))

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
            return self._judged(given, resolve_symlinks(f"{self._root.real}/{path}"))

    def _locate_inside(self, given: str, path: str) -> Location:
        """The short way: no link is in the path, so it leads where it says."""
        real = self._root.real if path == "." else f"{self._root.real}/{path}"
        problem = None
        try:
            self._files.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except PathRefused as refused:
            problem = str(refused)
        return Location(
            given=given, real=real, inside=path, protected=self._covering(path, real), problem=problem
        )

    def _locate_on_host(self, given: str) -> Location:
        check_text(given)
        return self._judged(given, resolve_symlinks("/" + normal(given.lstrip("/") or ".")))

    def _judged(self, given: str, real: str) -> Location:
        inside = relative_to(real, self._root.real)
        if inside is not None:
            return self._locate_inside(given, inside)
        return Location(
            given=given, real=real, protected=self._covering(None, real), problem=_kind_problem(real)
        )

    def _covering(self, inside: str | None, real: str) -> str | None:
        for place in self._places if inside is None else self._places_inside:
            if is_within(real, place) or is_within(place, real):
                return place
        return None if inside is None else self._protections.covering(inside)


def _kind_problem(real: str) -> str | None:
    try:
        found = os.lstat(real)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode):
        return None
    return f"{real!r} is no plain file or folder"


def _showable(given: str) -> str:
    """The path as it can be written down: what is no Unicode is escaped."""
    return given.encode("utf-8", "backslashreplace").decode()
