"""A resolver for tests over a real folder tree: symlinks followed, also those that dangle."""

import os
from collections.abc import Sequence
from pathlib import Path

from holdfast.core import Location


class RealPaths:
    """Where paths really lead, with `~` as the shell reads it and `/workspace` as the guest does."""

    def __init__(self, root: Path, *, protected: tuple[Path, ...] = (), home: Path | None = None) -> None:
        self._root = os.path.realpath(root)
        self._protected = tuple(os.path.realpath(one) for one in protected)
        self._home = str(home or root)

    def locate(self, given: str) -> Location:
        if "\0" in given:
            return Location(given=given, problem="holds a NUL")
        path = given
        if path == "~" or path.startswith("~/"):
            path = self._home + path[1:]
        if path == "/workspace" or path.startswith("/workspace/"):
            path = self._root + path[len("/workspace") :]
        real = os.path.realpath(os.path.join(self._root, path))
        protected = next((one for one in self._protected if _within(real, one)), None)
        inside = os.path.relpath(real, self._root) if _within(real, self._root) else None
        return Location(given=given, real=real, inside=inside, protected=protected)

    def locate_name(self, given: str) -> Location:
        return self.locate(given)

    def closed_below(self, location: Location) -> str | None:
        return None

    def locate_all(self, given: Sequence[str]) -> list[Location]:
        return [self.locate(each) for each in given]


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder + "/")
