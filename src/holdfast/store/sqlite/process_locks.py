"""Process locks: how one process knows that another one is alive.

Each open store holds a lock on its own file. The kernel drops the lock when the process ends for any reason, and unlike
a process id the lock never passes to another process. A stopped process keeps its lock, so its state is checked too.
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

LOCK_TIMEOUT_SECONDS = 10.0


class ProcessLock:
    """The lock of one open store. `token` identifies it in leases."""

    def __init__(self, folder: Path) -> None:
        self.token = f"{os.getpid()}-{secrets.token_hex(6)}"
        self.pid = os.getpid()
        self.host = socket.gethostname()
        self._folder = folder
        self._path = folder / self.token
        # Locked under another name first: `sweep` must never find it unlocked.
        draft = folder / f".{self.token}"
        self._descriptor: int | None = os.open(
            draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600
        )
        os.fchmod(self._descriptor, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        draft.rename(self._path)

    def is_alive(self, token: str, pid: int, host: str) -> bool:
        """Whether the process with this token is running and not stopped."""
        if not _is_locked(self._folder / token):
            return False
        return host != self.host or not _is_stopped(pid)

    def is_alone(self) -> bool:
        """Whether no other store, of this process or another, is open on the folder."""
        return not any(path != self._path and _is_locked(path) for path in self._folder.iterdir())

    def sweep(self) -> None:
        """Remove the lock files of processes that ended."""
        for path in self._folder.iterdir():
            if not path.name.startswith(".") and not _is_locked(path):
                with suppress(OSError):  # an unlocked file is harmless
                    path.unlink(missing_ok=True)

    def close(self) -> None:
        """Release the lock. Idempotent."""
        if self._descriptor is not None:
            with suppress(OSError):  # only the lock matters, not the file
                self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = None


def any_process_open(folder: Path) -> bool:
    """Whether any process, this one included, has the store open."""
    return folder.exists() and any(_is_locked(path) for path in folder.iterdir())


@contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """Hold a lock that one process has at a time, for startup. Raises StoreUnavailable after a timeout."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, 0o600)
        deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
        while not _lock(descriptor):
            if time.monotonic() > deadline:
                raise StoreUnavailable(
                    f"another process keeps {str(path)!r} locked",
                    hint="if a process was suspended during its start, continue or end it",
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
        # Non-blocking and without following symlinks: a file that is not ours can be a pipe or a link.
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
    # The name in parentheses can contain anything, so the state is what follows the last parenthesis.
    return status.rpartition(")")[2].split()[0] in ("T", "t")
