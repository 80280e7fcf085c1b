"""Presence: how one process knows that another still lives.

Each open store holds a lock on a file of its own. The kernel lets go of it when the process ends, however it ends, so a
lock that can be had belongs to nobody; unlike a process number it is never given to somebody else. A process that was
stopped keeps its lock, so its state is asked for as well.
"""

import errno
import fcntl
import os
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from holdfast.core.errors import StoreUnavailable

ALONE_TIMEOUT_SECONDS = 10.0


class ProcessLock:
    """The sign that this store is open. `token` names it in the leases it takes."""

    def __init__(self, folder: Path) -> None:
        self.token = f"{os.getpid()}-{secrets.token_hex(6)}"
        self.pid = os.getpid()
        self.host = socket.gethostname()
        self._folder = folder
        self._path = folder / self.token
        # Locked under another name first: a sweep must never meet it unlocked.
        draft = folder / f".{self.token}"
        self._descriptor: int | None = os.open(
            draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
        )
        os.fchmod(self._descriptor, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        draft.rename(self._path)

    def is_alive(self, token: str, pid: int, host: str) -> bool:
        """Whether the holder with this token still runs and is not stopped."""
        if not _is_locked(self._folder / token):
            return False
        return host != self.host or not _is_stopped(pid)

    def sweep(self) -> None:
        """Remove the signs of those who are gone."""
        for path in self._folder.iterdir():
            if not path.name.startswith(".") and not _is_locked(path):
                with suppress(OSError):  # it says nothing, so it may as well stay until the next time
                    path.unlink(missing_ok=True)

    def close(self) -> None:
        """Take the sign away. Idempotent."""
        if self._descriptor is not None:
            with suppress(OSError):  # what says that we live is the lock
                self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None


def any_process_open(folder: Path) -> bool:
    """Whether any process, this one included, has the store open."""
    return folder.exists() and any(_is_locked(path) for path in folder.iterdir())


@contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """One process at a time. For what is done once in a store's life; raises StoreUnavailable after a while."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        deadline = time.monotonic() + ALONE_TIMEOUT_SECONDS
        while not _lock(descriptor):
            if time.monotonic() > deadline:
                raise StoreUnavailable(
                    f"another process keeps {str(path)!r} locked",
                    hint="a process that was stopped while it started has to be continued or ended",
                )
            time.sleep(0.005)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_locked(path: Path) -> bool:
    try:
        # Not waiting: what is no sign of ours may be a pipe, or a link that leads elsewhere.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as problem:
        if problem.errno in (errno.ENOENT, errno.ELOOP, errno.ENXIO):
            return False
        raise
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _is_stopped(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    # The name in parentheses may hold anything, so the state is what follows the last of them.
    return status.rpartition(")")[2].split()[0] in ("T", "t")
