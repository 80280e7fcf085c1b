"""Path names: the lexical checks and normalization of paths that guests give. Pure; it never looks at the disk.

A path is normalized or refused. A normal path is relative to the workspace, has `/` between its parts, and no `.` or `..`.
A name that two programs could read differently is refused, not repaired: the file that is judged, the one shown to a person
and the one opened must be the same.
"""

import re
import unicodedata
from collections.abc import Sequence

from holdfast.core.errors import PathRefused
from holdfast.core.globs import casefold_path

GUEST_ROOTS = ("/workspace", "/app")
"""The absolute names of the workspace for guests."""
MAX_NAME_BYTES = 255
MAX_PATH_BYTES = 4095
SCRATCH_PREFIX = ".holdfast-"
"""New content is written to such a file and then renamed to its destination. Guests cannot see or name these files."""

# Control, bidirectional and zero-width characters. Unusual spaces and emoji selectors occur in legitimate names.
_UNSHOWABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e01ef]"
)
_WINDOWS_ALIAS = re.compile(r"(?:git|holdfa)~\d|\.(?:git|holdfast):", re.I)
"""Short names and streams, by which a disk of Windows opens `.git` and `.holdfast`. Linux mounts such disks."""
_DRIVE = re.compile(r"[A-Za-z]:")
_ORDINARY = re.compile(r"[A-Za-z0-9_-]+(?:[./][A-Za-z0-9_-]+)*")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def relative(given: str, roots: Sequence[str] = GUEST_ROOTS) -> str:
    """The path relative to the workspace, `.` for the workspace itself. Raises PathRefused.

    `roots` are the absolute names of the workspace; the longest match decides.
    """
    if len(given) <= MAX_NAME_BYTES and is_ordinary(given):
        return given
    check_text(given)
    path = _below(given, roots) if given.startswith("/") else normal(given)
    check_text(path)  # again, because a `./` may have hidden a drive letter or `~`
    return path


def _below(given: str, roots: Sequence[str]) -> str:
    absolute = "/" + normal(given.lstrip("/") or ".")
    for root in sorted(roots, key=len, reverse=True):
        if absolute == root:
            return "."
        if absolute.startswith(root.rstrip("/") + "/"):
            return absolute[len(root.rstrip("/")) + 1 :]
    raise PathRefused(f"{given!r} is outside the workspace", hint="use a path relative to the workspace")


def check_text(given: str) -> None:
    """Refuse text that cannot be a path, whatever it leads to. Raises PathRefused."""
    if not given:
        raise PathRefused("the path is empty", hint="the workspace itself is '.'")
    try:
        size = len(given.encode())
    except UnicodeEncodeError:
        raise PathRefused(f"{given!a} is not valid Unicode") from None
    if size > MAX_PATH_BYTES:
        raise PathRefused(f"a path has at most {MAX_PATH_BYTES} bytes, this one has {size}")
    if _UNSHOWABLE.search(given):
        raise PathRefused(f"{given!a} has control or invisible characters")
    if "\\" in given or _DRIVE.match(given) or given.startswith("//") or _SCHEME.match(given):
        raise PathRefused(
            f"{given!r} is a drive, network or URL form", hint="use '/' between the parts of a path"
        )
    if given.startswith("~"):
        raise PathRefused(f"{given!r} starts with '~'", hint="write the full path")
    if not given.isascii() and not unicodedata.is_normalized("NFC", given):
        raise PathRefused(f"{given!a} is not in Unicode normal form C", hint="use the composed form")


def is_ordinary(path: str) -> bool:
    """Whether a path is relative and consists of letters, digits, `_`, `-` and inner dots alone, so that it is normal as it is."""
    return _ORDINARY.fullmatch(path) is not None


def normal(given: str) -> str:
    """Normalize a checked relative path. Raises PathRefused if it leaves the workspace."""
    parts: list[str] = []
    for part in given.split("/"):
        if part in ("", "."):
            continue
        if part == "..":
            if not parts:
                raise PathRefused(f"{given!r} leads out of the workspace")
            parts.pop()
            continue
        _check_part(part)
        parts.append(part)
    return "/".join(parts) or "."


def is_reachable(path: str) -> bool:
    """Whether a guest could give a path that was found on disk; other paths are not listed."""
    if _ORDINARY.fullmatch(path):
        return True
    try:
        check_text(path)
        return normal(path) == path
    except PathRefused:
        return False


def opens_as(name: str) -> str:
    """The name that some file system takes for this one: without case, invisible characters, and dots and spaces at the end."""
    return casefold_path(name).rstrip(". ")


def is_windows_alias(name: str) -> bool:
    """Whether a disk of Windows opens `.git` or `.holdfast` by this name."""
    return _WINDOWS_ALIAS.match(name) is not None


def parent_and_name(path: str) -> tuple[str, str]:
    """The folder of a normal path, and the last part. Raises PathRefused for the workspace itself."""
    if path == ".":
        raise PathRefused("the workspace itself cannot be written or removed")
    parent, _, name = path.rpartition("/")
    return parent or ".", name


def folders_above(path: str) -> tuple[str, ...]:
    """The folders above a normal path, innermost first, without the workspace itself."""
    parts = path.split("/")
    return tuple("/".join(parts[:length]) for length in range(len(parts) - 1, 0, -1))


def is_within(path: str, folder: str) -> bool:
    """Whether a normal path is the folder or is inside it."""
    return path == folder or path.startswith("/" if folder == "/" else f"{folder}/")


def _check_part(part: str) -> None:
    if len(part.encode()) > MAX_NAME_BYTES:
        raise PathRefused(f"a file name has at most {MAX_NAME_BYTES} bytes")
    if is_windows_alias(part):
        raise PathRefused(f"{part!r} is a name of a protected folder on a disk of Windows")
    if part.endswith((" ", ".")) and part.strip("."):
        raise PathRefused(
            f"{part!r} ends in a dot or a space", hint="some systems drop it and open another file"
        )
    if part.casefold().startswith(SCRATCH_PREFIX):
        raise PathRefused(f"{part!r} is reserved for Holdfast")
