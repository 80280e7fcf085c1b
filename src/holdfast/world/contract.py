"""What every world promises: files by their path relative to the workspace, as a guest sees them under `/workspace`.

Worlds are synchronous: each call is a handful of local system calls. A path that leads outside raises PathRefused; the
ordinary troubles of files are the ordinary errors of Python (FileNotFoundError, IsADirectoryError, ...).

Names for content: SHA-256 of one file, and of a whole tree.
"""

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, Protocol

from holdfast.core import Change, Value, digest_bytes

NOT_EMPTY = "the folder is not empty; say recursive to remove it with everything in it"


class Stat(Value):
    """What is at a path."""

    path: str
    kind: Literal["file", "folder"]
    size: int = 0
    modified_ms: int = 0
    mode: int = 0o644


class Hit(Value):
    """A line that a search found; `line` counts from 1."""

    path: str
    line: int
    text: str


def as_bytes(content: bytes | str) -> bytes:
    """What is written: bytes as they are, text as UTF-8."""
    return content.encode() if isinstance(content, str) else bytes(content)


class World(Protocol):
    """Files and folders behind one door."""

    def resolve(self, path: str) -> str:
        """The one name of a path: normal, relative, every link followed; `.` is the workspace. Raises PathRefused."""
        ...

    def read(self, path: str) -> bytes:
        """The whole content."""
        ...

    def list(self, pattern: str = "**/*") -> tuple[str, ...]:
        """Files whose path matches the glob, sorted, POSIX separators."""
        ...

    def files(self) -> tuple[str, ...]:
        """Every file, those with a dot included, sorted."""
        ...

    def entries(self, path: str = ".") -> tuple[Stat, ...]:
        """What lies directly in a folder, sorted by name."""
        ...

    def exists(self, path: str) -> bool:
        """Whether a file or folder is there."""
        ...

    def stat(self, path: str) -> Stat:
        """Kind, size and time."""
        ...

    def write(
        self, path: str, content: bytes | str, *, overwrite: bool = True, mode: int | None = None
    ) -> Change:
        """Create or replace a file, its folders included; text is UTF-8. It keeps its mode where none is given."""
        ...

    def append(self, path: str, content: bytes) -> Change:
        """Add to the end of a file, which is created where there is none."""
        ...

    def make_folder(self, path: str) -> None:
        """Create a folder and its parents; one that exists is fine."""
        ...

    def delete(self, path: str, *, recursive: bool = False) -> tuple[Change, ...]:
        """Remove a file or an empty folder, or a folder with everything in it if asked to."""
        ...

    def move(self, source: str, destination: str) -> tuple[Change, ...]:
        """Give a file or folder another name; a file at the destination is replaced."""
        ...

    def copy_in(self, source: Path, path: str, *, overwrite: bool = False) -> tuple[Change, ...]:
        """Copy a file of the host, or a folder with everything in it, to a path in the world."""
        ...

    def copy_out(self, path: str, destination: Path, *, overwrite: bool = False) -> tuple[Path, ...]:
        """Copy a file, or a folder with everything in it, to a place on the host."""
        ...

    def search(self, query: str, pattern: str = "**/*", *, limit: int = 1000) -> tuple[Hit, ...]:
        """Lines that match a regular expression."""
        ...

    def fingerprint(self, path: str | None = None) -> str:
        """SHA-256 of one file's content, or of the whole tree; the empty string where there is no such file."""
        ...

    def sync(self, paths: Sequence[str]) -> None:
        """Make what happened at these paths durable, where the world is on a disk."""
        ...

    def check_room(self, *, bytes: int, files: int) -> None:
        """Raise QuotaExceeded where the world may not grow by this much; shrinking always may be."""
        ...

    def recount(self) -> None:
        """Take notice that others may have changed files: what the world holds is counted anew where that matters."""
        ...

    def sweep(self) -> None:
        """Remove what a writer that was killed left half-written."""
        ...


NOTHING = ""
"""The fingerprint of a file that is not there."""

fingerprint_of = digest_bytes


def tree_fingerprint(files: Iterable[tuple[str, str]]) -> str:
    """Over the sorted paths and fingerprints of all files; equal exactly when the files are."""
    whole = hashlib.sha256()
    for path, fingerprint in sorted(files):
        whole.update(f"{path}\0{fingerprint}\n".encode("utf-8", "surrogateescape"))
    return whole.hexdigest()
