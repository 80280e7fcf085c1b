"""A repository of the workspace on the host: where its objects and refs are, whatever form it has.

A plain clone has a `.git` folder. A linked worktree or a submodule has a `.git` file that points elsewhere; a file can be forged,
so the place that it points to must point back.
"""

import os
from pathlib import Path

from holdfast.commands.git.config_text import ConfigEntry, parse_config
from holdfast.core import Value
from holdfast.core.errors import CommandError

_MAX_SMALL_FILE = 1 << 20


class GitRepository(Value):
    """A repository whose commits can be accepted."""

    folder: str
    """Relative to the workspace; `.` for its root."""
    common_dir: str
    """The git folder with objects and refs, absolute; shared by linked worktrees."""
    object_format: str = "sha1"

    @property
    def id_length(self) -> int:
        """How many hexadecimal digits an object id has."""
        return 64 if self.object_format == "sha256" else 40


def find_repository(workspace: Path, folder: str = ".") -> GitRepository:
    """The repository that a folder of the workspace belongs to. Raises CommandError."""
    root = Path(os.path.realpath(workspace))
    start = Path(os.path.realpath(root / folder))
    if start != root and root not in start.parents:
        raise CommandError(f"{folder!r} is outside the workspace")
    for place in (start, *start.parents):
        link = place / ".git"
        if link.is_symlink():
            raise CommandError(f"{str(link)!r} is a symbolic link; its repository cannot take commits")
        if link.is_dir():
            return _repository(root, place, link)
        if link.is_file():
            return _repository(root, place, _linked(root, place, link))
        if place == root:
            break
    raise CommandError(
        f"there is no git repository at {folder!r}",
        hint="commits of a repository that a program made in the sandbox cannot be accepted; commit its files instead",
    )


def _linked(root: Path, place: Path, link: Path) -> Path:
    """The git folder that a `.git` file points to, if it points back."""
    text = _small(link).strip()
    if not text.startswith("gitdir:"):
        raise CommandError(f"{str(link)!r} does not name a git folder")
    git_dir = Path(os.path.realpath(place / text.removeprefix("gitdir:").strip()))
    if root in git_dir.parents:
        return git_dir
    back = git_dir / "gitdir"
    if back.is_file():
        points_back = os.path.realpath(git_dir / _small(back).strip()) == os.path.realpath(link)
    else:
        worktree = _setting(git_dir, "core", "worktree")
        points_back = worktree is not None and os.path.realpath(git_dir / worktree) == str(place)
    if not points_back:
        raise CommandError(f"{str(link)!r} points to a repository that does not know this folder")
    return git_dir


def _repository(root: Path, place: Path, git_dir: Path) -> GitRepository:
    common = git_dir / "commondir"
    common_dir = Path(os.path.realpath(git_dir / _small(common).strip())) if common.is_file() else git_dir
    if not all((common_dir / name).is_dir() for name in ("objects", "refs")):
        raise CommandError(f"{str(common_dir)!r} is not a git folder")
    if any(mark in str(common_dir) for mark in '\n"'):
        raise CommandError(
            f"a repository at {str(common_dir)!r} cannot take commits: its path has a quote or a line break"
        )
    return GitRepository(
        folder=str(place.relative_to(root)),
        common_dir=str(common_dir),
        object_format=(_setting(common_dir, "extensions", "objectformat") or "sha1").lower(),
    )


def _setting(git_dir: Path, section: str, name: str) -> str | None:
    config = git_dir / "config"
    if not config.is_file():
        return None
    found = [entry.value for entry in parse_config(_small(config)) if _is(entry, section, name)]
    return found[-1] if found else None


def _is(entry: ConfigEntry, section: str, name: str) -> bool:
    return (entry.section, entry.subsection, entry.name) == (section, None, name)


def _small(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_SMALL_FILE).decode("utf-8", "surrogateescape")
    except OSError as error:
        raise CommandError(f"{str(path)!r} cannot be read: {error.strerror}") from error
