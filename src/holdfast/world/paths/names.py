"""What a guest may call a file. Pure: it looks at the words of a path and never at the disk.

Every path a guest gives becomes a normal form here, or a refusal: relative to the workspace, `/` between the parts, no
`.` and no `..`. A name that two programs could read in two ways is refused and not repaired, because what is judged,
what a person is shown and what is opened have to be the same file.
"""

import re
import unicodedata
from collections.abc import Sequence

from holdfast.core.errors import PathRefused

GUEST_ROOTS = ("/workspace", "/app")
"""How guests call the workspace."""
MAX_NAME_BYTES = 255
MAX_PATH_BYTES = 4095
SCRATCH_PREFIX = ".holdfast-"
"""Files that we write beside their destination before they are renamed; guests neither see nor name them."""

# Controls, marks of direction, and what takes no room. Odd spaces and the selectors of emoji stand in honest names.
_UNSHOWABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e01ef]"
)
_DRIVE = re.compile(r"[A-Za-z]:")
_ORDINARY = re.compile(r"[A-Za-z0-9_-]+(?:[./][A-Za-z0-9_-]+)*")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def relative(given: str, roots: Sequence[str] = GUEST_ROOTS) -> str:
    """The path relative to the workspace, `.` for the workspace itself. Raises PathRefused.

    `roots` are the absolute names of the workspace; the longest that fits decides.
    """
    check_text(given)
    path = _below(given, roots) if given.startswith("/") else normal(given)
    check_text(path)  # what was hidden behind a `./` has come to the front
    return path


def _below(given: str, roots: Sequence[str]) -> str:
    absolute = "/" + normal(given.lstrip("/") or ".")
    for root in sorted(roots, key=len, reverse=True):
        if absolute == root:
            return "."
        if absolute.startswith(root.rstrip("/") + "/"):
            return absolute[len(root.rstrip("/")) + 1 :]
    raise PathRefused(
        f"{given!r} lies outside the workspace", hint="name a file by its path relative to the workspace"
    )


def check_text(given: str) -> None:
    """Refuse what no path may look like, whatever it leads to. Raises PathRefused."""
    if not given:
        raise PathRefused("an empty path names nothing", hint="the workspace itself is '.'")
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
        raise PathRefused(f"{given!r} begins with '~'", hint="write the folder out")
    if not given.isascii() and not unicodedata.is_normalized("NFC", given):
        raise PathRefused(f"{given!a} is not in Unicode normal form C", hint="use the composed form")


def normal(given: str) -> str:
    """A checked relative path without empty parts, `.` and `..`. Raises PathRefused where it climbs out."""
    parts: list[str] = []
    for part in given.split("/"):
        if part in ("", "."):
            continue
        if part == "..":
            if not parts:
                raise PathRefused(f"{given!r} climbs out of the workspace")
            parts.pop()
            continue
        _check_part(part)
        parts.append(part)
    return "/".join(parts) or "."


def is_reachable(path: str) -> bool:
    """Whether a path found on the disk is one that a guest could give; others are left out of listings."""
    if _ORDINARY.fullmatch(path):
        return True
    try:
        check_text(path)
        return normal(path) == path
    except PathRefused:
        return False


def parent_and_name(path: str) -> tuple[str, str]:
    """The folder of a normal path, and the last part. Raises PathRefused for the workspace itself."""
    if path == ".":
        raise PathRefused("the workspace itself can be neither written nor removed")
    parent, _, name = path.rpartition("/")
    return parent or ".", name


def folders_above(path: str) -> tuple[str, ...]:
    """The folders that a normal path lies in, the innermost first, the workspace itself left out."""
    parts = path.split("/")
    return tuple("/".join(parts[:length]) for length in range(len(parts) - 1, 0, -1))


def is_within(path: str, folder: str) -> bool:
    """Whether a normal path is a folder or lies in it."""
    return path == folder or path.startswith(f"{folder}/")


def _check_part(part: str) -> None:
    if len(part.encode()) > MAX_NAME_BYTES:
        raise PathRefused(f"a file name has at most {MAX_NAME_BYTES} bytes")
    if part.endswith((" ", ".")) and part.strip("."):
        raise PathRefused(
            f"{part!r} ends in a dot or a space", hint="some systems drop it and mean another file"
        )
    if part.casefold().startswith(SCRATCH_PREFIX):
        raise PathRefused(f"{part!r} belongs to Holdfast")
