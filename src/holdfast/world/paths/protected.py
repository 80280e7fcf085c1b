"""Protected names, which no policy can open: files that run as programs of the user, and Holdfast's own files.

A protection is a sequence of names, such as `.git/hooks`. It applies anywhere in a path, ignores case, and does not need to
exist yet. The names that lead to it are protected too, because replacing `.git` also replaces `.git/hooks`.

The data of a git repository can be read, but not changed. Almost every file in it makes git run or trust something: a
`commondir` file, for example, replaces the whole configuration. So guests change a repository by running git, and never by
writing its files. A repository is whatever git takes for one: `.git`, whether folder or file, and a folder with the parts
of a repository. A change that would complete such a folder is refused as well.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache

from holdfast.core.errors import PathRefused
from holdfast.world.paths.names import folders_above, is_windows_alias, opens_as

PROTECTED = (".git/hooks", ".git/config", ".git/modules", ".holdfast")
"""Closed to reads and changes in every workspace. Git runs programs that its configuration and its modules name."""
REPOSITORY = ".git"
"""The name of a repository, or of the file that leads to one. Closed to changes."""
_ALWAYS_PART = "HEAD"
_OTHER_PARTS = (("objects", "refs"), ("commondir",))
"""Git takes a folder for a repository if it has HEAD and all names of one of these groups (`is_git_directory` in its setup.c)."""
_PART_NAMES = frozenset(name.casefold() for group in ((_ALWAYS_PART,), *_OTHER_PARTS) for name in group)

Exists = Callable[[str], bool]
"""Whether there is anything at a path, protected or not."""


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

    def check_change(self, path: str, exists: Exists) -> None:
        """Raise PathRefused if a normal path is protected from changes."""
        self.check(path)
        name = repository_of(path, exists)
        if name is not None:
            raise PathRefused(
                f"{path!r} is part of a git repository ({name})", hint="change the repository by running git"
            )


def repository_of(path: str, exists: Exists) -> str | None:
    """The repository that a normal path is part of, or would be part of if it existed; None if there is none."""
    parts = [] if path == "." else path.split("/")
    for depth, part in enumerate(parts):
        if part.casefold() == REPOSITORY:
            return "/".join(parts[: depth + 1])
    prefix = ""
    for part in (*parts, ""):
        following = part.casefold()

        def has(name: str, prefix: str = prefix, following: str = following) -> bool:
            return name.casefold() == following or exists(prefix + name)

        if has(_ALWAYS_PART) and any(all(map(has, group)) for group in _OTHER_PARTS):
            return prefix.rstrip("/") or "."
        prefix += f"{part}/"
    return None


def repository_among(names: Collection[str]) -> bool:
    """Whether a folder with these names is a repository."""
    present = {name.casefold() for name in names if name.casefold() in _PART_NAMES}
    return _ALWAYS_PART.casefold() in present and any(present.issuperset(group) for group in _OTHER_PARTS)


def may_lead_to_repository(path: str) -> bool:
    """Whether a name in a path is one that a repository consists of, so that the path could complete one."""
    return not _PART_NAMES.isdisjoint(path.casefold().split("/"))


def may_change_repository(path: str) -> bool:
    """Whether the last name of a path is one that a repository consists of. Cheap, for walks over many files."""
    name = path.rpartition("/")[2].casefold()
    return name == REPOSITORY or name in _PART_NAMES


def protected_in(paths: Collection[str]) -> Iterator[tuple[str, str]]:
    """The paths of a whole tree that are closed to changes, each with the topmost path that the protection covers.

    The tree may come from somebody else: it need not list the folders that its files lie in.
    """
    parts_in: dict[str, set[str]] = {}
    """The parts of a repository that each folder has."""
    for path in paths:
        for above in (path, *folders_above(path)):
            folder, _, name = above.rpartition("/")
            if (part := name.casefold()) in _PART_NAMES:
                parts_in.setdefault(folder or ".", set()).add(part)
    roots = {folder for folder, names in parts_in.items() if repository_among(names)}
    for path in paths:
        parts = path.split("/")
        folders = [".", *("/".join(parts[: depth + 1]) for depth in range(len(parts)))]
        for folder in folders:
            if folder in roots or _is_protected_name(folder.rpartition("/")[2]):
                yield path, folder
                break


@lru_cache(maxsize=4096)
def _is_protected_name(name: str) -> bool:
    return opens_as(name) in (REPOSITORY, ".holdfast") or is_windows_alias(name)


def _reaches(parts: Sequence[str], run: tuple[str, ...]) -> bool:
    """Whether the path is the protected name, is beneath it, or leads to it."""
    shared = min(len(parts), len(run))
    return tuple(parts[:shared]) == run[:shared]
