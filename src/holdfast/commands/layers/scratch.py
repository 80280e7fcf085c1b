"""Scratch: what programs write and nobody reviews, because git ignores it. It stays in the layer and is never proposed.

The rules come from what programs see: a .gitignore in the layer, else the one of the base. `.git` is scratch at any depth.
Without git a fixed list applies.
"""

import os
from pathlib import Path

from holdfast.commands.layers.entries import open_file_beneath, status_beneath
from holdfast.commands.layers.gitignore import MAX_FILE_BYTES, IgnorePattern, parse_patterns
from holdfast.commands.layers.tracked import TrackedPaths

GIT = ".git"
_ALWAYS = frozenset({"__pycache__"})
USUALLY_IGNORED = frozenset(
    {
        "__pycache__", ".venv", "venv", "node_modules", "target", "dist", "build", ".tox", ".pytest_cache",
        ".mypy_cache", ".ruff_cache", ".next", ".gradle",
    }
)  # fmt: skip


class Scratch:
    """Decides what is scratch. Valid for one walk: it remembers the files that it read."""

    def __init__(self, layer: int, base: int, *, workspace: Path) -> None:
        self._layer = layer
        self._base = base
        self._patterns: dict[str, list[IgnorePattern]] = {}
        repository = _repository_of(workspace)
        self._inner = workspace.relative_to(repository).parts if repository else ()
        self._above = _patterns_above(repository, self._inner) if repository else []
        self._tracked = TrackedPaths(repository / GIT, within="/".join(self._inner)) if repository else None

    def covers(self, path: str, *, is_folder: bool) -> bool:
        """Whether a path is scratch; the caller has found that its parents are not."""
        name = path.rpartition("/")[2]
        if name == GIT:
            return True
        if self._tracked is None:
            return name in USUALLY_IGNORED
        is_ignored = name in _ALWAYS or self._is_ignored(path, is_folder)
        # git never ignores what it tracks.
        return is_ignored and not self._tracked.has(path, is_folder=is_folder)

    def covers_any_parent(self, path: str, *, is_folder: bool = False) -> bool:
        """Whether a path or one of its parents is scratch."""
        names = path.split("/")
        return any(
            self.covers("/".join(names[:count]), is_folder=is_folder or count < len(names))
            for count in range(1, len(names) + 1)
        )

    def _is_ignored(self, path: str, is_folder: bool) -> bool:
        names = path.split("/")
        # The nearest file decides, and in it the last line that matches.
        for depth in range(len(names) - 1, -1, -1):
            inner = names[depth:]
            for pattern in reversed(self._of_folder("/".join(names[:depth]))):
                if pattern.matches(inner, is_folder=is_folder):
                    return not pattern.is_negated
        for prefix, patterns in self._above:
            for pattern in reversed(patterns):
                if pattern.matches([*prefix, *names], is_folder=is_folder):
                    return not pattern.is_negated
        return False

    def _of_folder(self, folder: str) -> list[IgnorePattern]:
        if folder not in self._patterns:
            path = f"{folder}/.gitignore" if folder else ".gitignore"
            text = _read(self._layer, path)
            self._patterns[folder] = parse_patterns((_read(self._base, path) or "") if text is None else text)
        return self._patterns[folder]


def is_ignored(workspace: Path, path: str, *, is_folder: bool = False) -> bool:
    """Whether git ignores a path in a folder, or one of its parents; without git, whether it is usually ignored."""
    folder = os.open(workspace, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return Scratch(folder, folder, workspace=workspace).covers_any_parent(path, is_folder=is_folder)
    finally:
        os.close(folder)


def _repository_of(workspace: Path) -> Path | None:
    """The repository whose rules apply to a workspace. One that ignores the workspace itself says nothing about what is in it."""
    repository = next((each for each in (workspace, *workspace.parents) if (each / GIT).exists()), None)
    if repository is None or repository == workspace:
        return repository
    inner = workspace.relative_to(repository).as_posix()
    return None if is_ignored(repository, inner, is_folder=True) else repository


def _patterns_above(
    repository: Path, inner: tuple[str, ...]
) -> list[tuple[tuple[str, ...], list[IgnorePattern]]]:
    """The rules from outside the workspace, nearest first: of the folders above it, then the repository's own list.

    Each with the names that lead from its folder to the workspace.
    """
    found = [
        (inner[depth:], _patterns_in(repository.joinpath(*inner[:depth], ".gitignore")))
        for depth in range(len(inner) - 1, -1, -1)
    ]
    return [*found, (inner, _patterns_in(repository / GIT / "info" / "exclude"))]


def _patterns_in(file: Path) -> list[IgnorePattern]:
    try:
        with file.open("rb") as opened:
            return parse_patterns(opened.read(MAX_FILE_BYTES).decode(errors="surrogateescape"))
    except OSError:
        return []


def _read(top: int, path: str) -> str | None:
    """The text of a .gitignore, none of it if something else is in its place; None if there is nothing."""
    file = open_file_beneath(top, path)
    if file is None:
        return None if status_beneath(top, path) is None else ""
    with open(file, "rb") as opened:
        return opened.read(MAX_FILE_BYTES).decode(errors="surrogateescape")
