"""The contract of a world: files by their path relative to the workspace, which guests see as `/workspace`.

Worlds are synchronous, because each call is a few local system calls. A path that leads outside raises PathRefused. Other
errors are Python's own: FileNotFoundError, IsADirectoryError and so on. A fingerprint is the SHA-256 of a file or a tree.
"""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, Protocol

from holdfast.core import Change, Value, digest_bytes

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


def tree_fingerprint(files: Iterable[tuple[str, str]]) -> str:
    """The hash of all paths and fingerprints: equal exactly if the files are equal."""
    whole = hashlib.sha256()
    for path, fingerprint in sorted(files):
        whole.update(f"{path}\0{fingerprint}\n".encode("utf-8", "surrogateescape"))
    return whole.hexdigest()
