"""Protected names, which no policy can open: files that run as programs of the user, and Holdfast's own files.

A protection is a sequence of names, such as `.git/hooks`. It applies anywhere in a path, ignores case, and does not need to
exist yet. The names that lead to it are protected too, because replacing `.git` also replaces `.git/hooks`.
"""

from collections.abc import Sequence

from holdfast.core.errors import PathRefused

PROTECTED = (".git/hooks", ".git/config", ".git/modules", ".holdfast")
"""Protected in every workspace. Git runs programs that its configuration and its modules name."""


class Protections:
    """The protected names of one workspace."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self._runs = [
            (name, tuple(part.casefold() for part in name.strip("/").split("/")))
            for name in dict.fromkeys([*PROTECTED, *names])
        ]
        self._first = frozenset(run[0] for _, run in self._runs)

    def protection_of(self, path: str) -> str | None:
        """The protection that applies to a normal path, or None."""
        parts = path.casefold().split("/")
        if self._first.isdisjoint(parts):
            return None
        for name, run in self._runs:
            for start, part in enumerate(parts):
                if part == run[0] and _reaches(parts[start:], run):
                    return name
        return None

    def check(self, path: str) -> None:
        """Raise PathRefused if a normal path is protected."""
        name = self.protection_of(path)
        if name is not None:
            raise PathRefused(f"{path!r} is protected ({name})", hint="change it outside Holdfast")


_FIRST_NAMES = frozenset(name.split("/")[0].casefold() for name in PROTECTED)


def is_beneath_protected(path: str) -> bool:
    """Whether a normal path is, or is inside, a folder that contains something protected, such as `.git`."""
    return not _FIRST_NAMES.isdisjoint(path.casefold().split("/"))


def _reaches(parts: Sequence[str], run: tuple[str, ...]) -> bool:
    """Whether the path is the protected name, is beneath it, or leads to it."""
    shared = min(len(parts), len(run))
    return tuple(parts[:shared]) == run[:shared]
