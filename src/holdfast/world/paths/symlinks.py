"""Resolves symlinks to a path, for the policy and for finding the path to open. It opens nothing.

The result is a string, not a descriptor, so it can be outdated at once: callers open it without following symlinks.
"""

import os
import stat
from functools import cache

from holdfast.core.errors import PathRefused

MAX_LINKS = 40


def resolve_symlinks(absolute: str) -> str:
    """Where an absolute path leads with every symlink resolved. Parts that do not exist stay as they are.

    Raises PathRefused for magic links (`/proc/self/root`) and for loops.
    """
    pending = [part for part in reversed(absolute.split("/")) if part not in ("", ".")]
    done: list[str] = []
    links = 0
    while pending:
        part = pending.pop()
        if part == "..":
            del done[-1:]
            continue
        place = "/" + "/".join([*done, part])
        target = _link_target(place)
        if target is None:
            done.append(part)
            continue
        links += 1
        if links > MAX_LINKS:
            raise PathRefused(f"{absolute!r} is a loop of symlinks")
        if target.startswith("/"):
            done.clear()
        pending += [name for name in reversed(target.split("/")) if name not in ("", ".")]
    return "/" + "/".join(done)


def relative_to(real: str, root: str) -> str | None:
    """The part of an absolute path below a root, `.` for the root itself, None if it is elsewhere."""
    if real == root:
        return "."
    prefix = root.rstrip("/") + "/"
    return real[len(prefix) :] if real.startswith(prefix) else None


def _link_target(place: str) -> str | None:
    try:
        found = os.lstat(place)
        if not stat.S_ISLNK(found.st_mode):
            return None
        target = os.readlink(place)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise PathRefused(f"{place!r} cannot be resolved: {type(error).__name__}") from None
    if found.st_dev == _proc_device():
        raise PathRefused(f"{place!r} is a link in the /proc file system")
    return target


@cache
def _proc_device() -> int | None:
    try:
        return os.lstat("/proc/self").st_dev
    except OSError:
        return None
