"""Where links lead, in words: for judging a path and for finding the one to open. Nothing is opened here.

The answer is a string and not a descriptor, so it decides nothing by itself: whoever opens it opens it without following.
"""

import os
import stat
from functools import cache

from holdfast.core.errors import PathRefused

MAX_LINKS = 40


def resolve_symlinks(absolute: str) -> str:
    """Where an absolute path leads, every link followed; what does not exist is taken at its word.

    Raises PathRefused for links that are no words (`/proc/self/root`) and for circles.
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
            raise PathRefused(f"{absolute!r} goes round in a circle of links")
        if target.startswith("/"):
            done.clear()
        pending += [name for name in reversed(target.split("/")) if name not in ("", ".")]
    return "/" + "/".join(done)


def relative_to(real: str, root: str) -> str | None:
    """The part of an absolute path below a root, `.` for the root itself, None where it lies elsewhere."""
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
        raise PathRefused(f"{place!r} is a link of the system's process table")
    return target


@cache
def _proc_device() -> int | None:
    try:
        return os.lstat("/proc/self").st_dev
    except OSError:
        return None
