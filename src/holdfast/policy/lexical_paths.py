"""Paths resolved by their text alone, for policy examples and recorded history; and the absolute folders of a policy."""

import os
import posixpath
from collections.abc import Mapping, Sequence

from holdfast.core import Location

GUEST_ROOT = "/workspace"


class LexicalPaths:
    """Resolves as if there were no symlinks. Never use it for a call that will be executed."""

    def __init__(
        self, root: str = GUEST_ROOT, *, home: str = "/home/user", protected: tuple[str, ...] = ()
    ) -> None:
        self._root = root.rstrip("/")
        self._home = home
        self._protected = tuple(one.rstrip("/") for one in protected)

    def locate(self, given: str) -> Location:
        if not given or "\0" in given or "\\" in given:
            return Location(
                given=given, problem="is not a valid path: it is empty, or contains a NUL or a backslash"
            )
        path = self._home + given[1:] if given == "~" or given.startswith("~/") else given
        if path == GUEST_ROOT or path.startswith(GUEST_ROOT + "/"):
            path = self._root + path[len(GUEST_ROOT) :]
        real = posixpath.normpath(path if path[0] == "/" else f"{self._root}/{path}")
        protected = next((one for one in self._protected if _is_within(real, one)), None)
        inside = real[len(self._root) + 1 :] or "." if _is_within(real, self._root) else None
        return Location(given=given, real=real, inside=inside, protected=protected)

    def locate_name(self, given: str) -> Location:
        return self.locate(given)

    def closed_below(self, location: Location) -> str | None:
        return None

    def locate_all(self, given: Sequence[str]) -> list[Location]:
        return [self.locate(each) for each in given]


def resolve_folder(text: str, values: Mapping[str, str]) -> str:
    """A folder of a policy as an absolute path with symlinks resolved. Raises ValueError for anything else."""
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    if "{" in text:
        raise ValueError(f"{text!r} has a name in braces without a value; pass it with `--value NAME=TEXT`")
    path = os.path.expanduser(text)
    if not os.path.isabs(path) or "\0" in path:
        raise ValueError(f"{text!r} is not an absolute folder; for paths in the workspace use `paths`")
    return os.path.realpath(path)


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")
