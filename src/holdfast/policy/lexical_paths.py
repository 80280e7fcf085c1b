"""Paths resolved by their text alone: for examples in policies and for history, where there is no disk to look at.

Folders that a policy names by an absolute path.
"""

import os
import posixpath
from collections.abc import Mapping

from holdfast.core import Location

GUEST_ROOT = "/workspace"


class LexicalPaths:
    """Resolves as if there were no symlinks. Never to be used for a call that is going to be made."""

    def __init__(
        self, root: str = GUEST_ROOT, *, home: str = "/home/user", protected: tuple[str, ...] = ()
    ) -> None:
        self._root = root.rstrip("/")
        self._home = home
        self._protected = tuple(one.rstrip("/") for one in protected)

    def locate(self, given: str) -> Location:
        if not given or "\0" in given or "\\" in given:
            return Location(given=given, problem="is no path: empty, or with a NUL or a backslash")
        path = self._home + given[1:] if given == "~" or given.startswith("~/") else given
        if path == GUEST_ROOT or path.startswith(GUEST_ROOT + "/"):
            path = self._root + path[len(GUEST_ROOT) :]
        real = posixpath.normpath(path if path[0] == "/" else f"{self._root}/{path}")
        protected = next((one for one in self._protected if _lies_in(real, one)), None)
        inside = real[len(self._root) + 1 :] or "." if _lies_in(real, self._root) else None
        return Location(given=given, real=real, inside=inside, protected=protected)


def _lies_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")


def resolve_folder(text: str, values: Mapping[str, str]) -> str:
    """A folder of a policy as an absolute path, symlinks followed; raises ValueError on anything else."""
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    if "{" in text:
        raise ValueError(f"{text!r} holds a name in braces that has no value")
    path = os.path.expanduser(text)
    if not os.path.isabs(path) or "\0" in path:
        raise ValueError(f"{text!r} is no absolute folder; for paths in the workspace use `paths`")
    return os.path.realpath(path)
