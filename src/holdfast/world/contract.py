"""The contract of a world: files by their path relative to the workspace, which guests see as `/workspace`.

Worlds are synchronous, because each call is a few local system calls. A path that leads outside raises PathRefused. Other
errors are Python's own: FileNotFoundError, IsADirectoryError and so on. A fingerprint is the SHA-256 of a file or a tree.
"""

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import msgspec

from holdfast.core import LINK_MODE, Change, Value, digest_bytes

NOT_EMPTY = "the folder is not empty; use recursive to remove it with everything in it"


class Stat(Value):
    """What is at a path."""

    path: str
    kind: Literal["file", "folder"]
    size: int = 0
    modified_ms: int = 0
    mode: int = 0o644


class Hit(Value):
    """A line found by a search; `line` counts from 1."""

    path: str
    line: int
    text: str


def as_bytes(content: bytes | str) -> bytes:
    """The content to write: bytes unchanged, text as UTF-8."""
    return content.encode() if isinstance(content, str) else bytes(content)


class World(Protocol):
    """Files and folders of one workspace."""

    def resolve(self, path: str) -> str:
        """The canonical path: relative, normalized, symlinks resolved; `.` is the workspace. Raises PathRefused."""
        ...

    def resolve_name(self, path: str) -> str:
        """The canonical path of a name that is meant itself, even if it is a symlink: only its folders are resolved."""
        ...

    def normal(self, path: str) -> str:
        """The path as it is written: relative and normalized, symlinks not resolved. Raises PathRefused."""
        ...

    def read(self, path: str, *, offset: int = 0, length: int | None = None) -> bytes:
        """The content, or the part of it that starts at an offset and has at most a length."""
        ...

    def list(self, pattern: str = "**/*") -> tuple[str, ...]:
        """The files whose path matches a glob, sorted."""
        ...

    def files(self) -> tuple[str, ...]:
        """Every file, including dot files, sorted."""
        ...

    def entries(self, path: str = ".") -> tuple[Stat, ...]:
        """The files and folders directly in a folder, sorted by name."""
        ...

    def names(self, path: str) -> tuple[str, ...]:
        """The paths of everything directly in a folder, sorted: also symlinks, and what is not listed."""
        ...

    def exists(self, path: str) -> bool:
        """Whether a file or folder exists."""
        ...

    def stat(self, path: str) -> Stat:
        """Kind, size, time and mode."""
        ...

    def write(
        self, path: str, content: bytes | str, *, overwrite: bool = True, mode: int | None = None
    ) -> Change:
        """Create or replace a file and create its folders. An existing file keeps its mode unless one is given."""
        ...

    def check_change(self, path: str) -> None:
        """Raise PathRefused if the path is protected from changes, as the data of a git repository is."""
        ...

    def check_name(self, path: str) -> None:
        """As `check_change`, for the last name itself, even if it is a symlink."""
        ...

    def check_link(self, path: str, target: str) -> None:
        """Raise PathRefused unless a new symlink would stay in the workspace and lead to nothing that is protected."""
        ...

    def append(self, path: str, content: bytes) -> Change:
        """Append to a file; create it if it does not exist."""
        ...

    def make_folder(self, path: str) -> None:
        """Create a folder and its parents. An existing folder is not an error."""
        ...

    def delete(self, path: str, *, recursive: bool = False) -> tuple[Change, ...]:
        """Remove a file or an empty folder; with `recursive`, a folder and everything in it."""
        ...

    def move(self, source: str, destination: str) -> tuple[Change, ...]:
        """Rename a file or folder. A file at the destination is replaced."""
        ...

    def link_target(self, path: str) -> str | None:
        """The target of the symlink that the last name of a path is; None if it is not one."""
        ...

    def make_link(self, path: str, target: str, *, is_original: bool = False) -> Change:
        """Create a symlink, or replace a file or another symlink by it. Raises PathRefused if it may lead outside.

        One that is restored as it was (`is_original`) may lead anywhere.
        """
        ...

    def remove_link(self, path: str) -> Change:
        """Remove a symlink and not what it leads to."""
        ...

    def copy_in(self, source: Path, path: str, *, overwrite: bool = False) -> tuple[Change, ...]:
        """Copy a file or a folder from the host into the world."""
        ...

    def copy_out(self, path: str, destination: Path, *, overwrite: bool = False) -> tuple[Path, ...]:
        """Copy a file or a folder from the world to the host."""
        ...

    def search(self, query: str, pattern: str = "**/*", *, limit: int = 1000) -> tuple[Hit, ...]:
        """The lines that match a regular expression."""
        ...

    def fingerprint(self, path: str | None = None) -> str:
        """SHA-256 of one file's content, or of the whole tree; empty if the file does not exist."""
        ...

    def links(self) -> tuple[str, ...]:
        """Every symlink, sorted. `files` has none of them."""
        ...

    def sync(self, paths: Sequence[str]) -> None:
        """Make the changes at these paths durable, if the world is on disk."""
        ...

    def check_room(self, *, bytes: int, files: int) -> None:
        """Raise QuotaExceeded if the world may not grow by this much. Shrinking is always allowed."""
        ...

    def recount(self) -> None:
        """Count the disk usage again before the next growth, because another process may have changed files."""
        ...

    def sweep(self) -> None:
        """Remove the scratch files of writers that were killed."""
        ...


NOTHING = ""
"""The fingerprint of a file that does not exist."""

fingerprint_of = digest_bytes


class NamedContent(NamedTuple):
    """What a name itself has: the content and mode of a file, or the target and LINK_MODE of a symlink; None if neither."""

    content: bytes | None
    mode: int | None

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the content, NOTHING if there is none."""
        return NOTHING if self.content is None else fingerprint_of(self.content)


def read_name(world: World, path: str) -> NamedContent:
    """What is at a path, a symlink as itself. Raises PathRefused or OSError."""
    target = world.link_target(path)
    if target is not None:
        return NamedContent(os.fsencode(target), LINK_MODE)
    try:
        return NamedContent(world.read(path), world.stat(path).mode)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return NamedContent(None, None)


def fingerprint_name(world: World, path: str) -> str:
    """SHA-256 of what is at a path, a symlink as itself; NOTHING if there is no file."""
    target = world.link_target(path)
    return world.fingerprint(path) if target is None else fingerprint_of(os.fsencode(target))


def write_name(
    world: World, path: str, content: bytes, *, mode: int | None, is_original: bool = False
) -> Change:
    """Write what a name itself shall have: a file, or a symlink if the mode says so."""
    if mode == LINK_MODE:
        return world.make_link(path, os.fsdecode(content), is_original=is_original)
    if world.link_target(path) is None:
        return world.write(path, content, mode=mode)
    before = world.remove_link(path).before
    return msgspec.structs.replace(world.write(path, content, mode=mode), kind="modified", before=before)


def delete_name(world: World, path: str) -> tuple[Change, ...]:
    """Remove a file, an empty folder, or a symlink and not what it leads to."""
    return world.delete(path) if world.link_target(path) is None else (world.remove_link(path),)


def tree_fingerprint(files: Iterable[tuple[str, str]]) -> str:
    """The hash of all paths and fingerprints: equal exactly if the files are equal."""
    whole = hashlib.sha256()
    for path, fingerprint in sorted(files):
        whole.update(f"{path}\0{fingerprint}\n".encode("utf-8", "surrogateescape"))
    return whole.hexdigest()
