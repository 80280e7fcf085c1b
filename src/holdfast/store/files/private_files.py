"""Untrusted files in our own folders: safe reading, locking and removal, whatever another process put there."""

import fcntl
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MAX_BYTES = 65_536
MAX_SETTINGS_BYTES = 4 << 20


def read_plain(path: Path, *, max_bytes: int) -> bytes:
    """Read a regular file of this user. Raises FileNotFoundError, or an OSError that says what is wrong with it."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise OSError("it is not a regular file")
        if state.st_uid != os.geteuid():
            raise OSError("it belongs to another user")
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(f"it has more than {max_bytes:,} bytes")
    return content


def read_settings(path: Path) -> bytes:
    """Read a file of settings, also through a symlink. Raises FileNotFoundError, or an OSError that says what is wrong with it."""
    # Non-blocking: opening a pipe would otherwise wait for ever.
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("it is not a regular file")
        content = file.read(MAX_SETTINGS_BYTES + 1)
    if len(content) > MAX_SETTINGS_BYTES:
        raise OSError(f"it has more than {MAX_SETTINGS_BYTES:,} bytes")
    return content


def read_own(path: Path) -> bytes | None:
    """Read a small regular file of this user; None if there is no file. Anything else reads as empty."""
    try:
        return read_plain(path, max_bytes=MAX_BYTES)
    except FileNotFoundError:
        return None
    except OSError:
        return b""  # a symlink, too large, or not ours: not a valid message


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file that several processes change. It is a file beside it, because the file itself is replaced."""
    lock = path.with_name(f".{path.name}.lock")
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def remove(path: Path) -> None:
    """Remove a file or folder, and ignore one that cannot be removed."""
    try:
        path.unlink(missing_ok=True)
    except OSError:
        shutil.rmtree(path, ignore_errors=True)
