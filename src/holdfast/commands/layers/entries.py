"""Entries of a layer or a base, found by descriptors and never through a link."""

import os
import stat

from holdfast.commands.init import beneath

OPAQUE = "user.overlay.opaque"
Signature = tuple[int, int, int]
"""Number, change time and size of a file. A program cannot set the change time."""


def signature_of(status: os.stat_result) -> Signature:
    """What changes whenever a file changes."""
    return (status.st_ino, status.st_ctime_ns, status.st_size)


def status_beneath(top: int, path: str) -> os.stat_result | None:
    """The status of what is at a path, never through a link; None if there is nothing."""
    try:
        parent, name = beneath.open_parent(top, path)
    except OSError:
        return None
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False)
    except OSError:
        return None
    finally:
        os.close(parent)


def open_file_beneath(top: int, path: str, *, max_bytes: int | None = None) -> int | None:
    """A regular file, of an allowed size, opened without following a link; None if there is none. The caller closes it."""
    try:
        parent, name = beneath.open_parent(top, path)
    except OSError:
        return None
    try:
        # O_NONBLOCK: a FIFO without a writer must not hang before its status is read.
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
    except OSError:
        return None
    finally:
        os.close(parent)
    status = os.fstat(file)
    if not stat.S_ISREG(status.st_mode) or (max_bytes is not None and status.st_size > max_bytes):
        os.close(file)
        return None
    return file


def names_beneath(top: int, folder: str) -> set[str]:
    """The names in a folder beneath `top`; none if it is not a folder."""
    try:
        opened = beneath.open_folder(top, folder)
    except OSError:
        return set()
    try:
        return set(os.listdir(opened))
    finally:
        os.close(opened)


def hides_base(folder: int) -> bool:
    """Whether an opened folder of the layer hides the base's folder completely."""
    try:
        return os.getxattr(folder, OPAQUE) == b"y"
    except OSError:
        return False


def shows_base(layer: int, path: str) -> bool:
    """Whether programs see the base at a path, or a copy over it: they removed neither the file nor a folder above it."""
    for at in (at for at, letter in enumerate(path) if letter == "/"):
        try:
            opened = beneath.open_folder(layer, path[:at])
        except FileNotFoundError:
            return True
        except OSError:
            return False
        try:
            if hides_base(opened):
                return False
        finally:
            os.close(opened)
    found = status_beneath(layer, path)
    return found is None or stat.S_ISREG(found.st_mode)
