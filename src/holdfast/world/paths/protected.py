"""Names that no policy opens: what would run as somebody's program, and what is our own.

A protection is a run of names, such as `.git/hooks`, and holds wherever it stands in a path, in any case of letters,
whether or not it exists yet. The names that lead to it are held too: who may replace `.git` has replaced `.git/hooks`.
"""

from collections.abc import Sequence

from holdfast.core.errors import PathRefused

PROTECTED = (".git/hooks", ".git/config", ".git/modules", ".holdfast")
"""Protected in every workspace. A git configuration names programs that git runs; so do its modules."""


class Protections:
    """The protected names of one workspace."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self._runs = [
            (name, tuple(part.casefold() for part in name.strip("/").split("/")))
            for name in dict.fromkeys([*PROTECTED, *names])
        ]
        self._first = frozenset(run[0] for _, run in self._runs)

    def covering(self, path: str) -> str | None:
        """The protection that covers a normal path, if any."""
        parts = path.casefold().split("/")
        if self._first.isdisjoint(parts):
            return None
        for name, run in self._runs:
            for start, part in enumerate(parts):
                if part == run[0] and _reaches(parts[start:], run):
                    return name
        return None

    def check(self, path: str) -> None:
        """Raise PathRefused where a normal path is protected."""
        name = self.covering(path)
        if name is not None:
            raise PathRefused(f"{path!r} is protected ({name})", hint="change it outside of Holdfast")


def _reaches(parts: Sequence[str], run: tuple[str, ...]) -> bool:
    """Whether the path is the protection, lies below it, or ends on the way to it."""
    shared = min(len(parts), len(run))
    return tuple(parts[:shared]) == run[:shared]
