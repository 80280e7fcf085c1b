"""The folder that a component is built in: one builder at a time in a cache, and nothing stays of one that was killed."""

import fcntl
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

_PREFIX = "build-"


@contextmanager
def opened_workshop(cache: Path, *, on_wait: Callable[[], None]) -> Iterator[Path]:
    """An empty folder of one's own, once nobody else builds; says so where it has to wait."""
    with _lock_of(cache) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(lock, fcntl.LOCK_EX)
        _clear(cache)
        with tempfile.TemporaryDirectory(dir=cache, prefix=_PREFIX) as workshop:
            yield Path(workshop)


def sweep(cache: Path) -> None:
    """Remove what a builder that was killed has left, unless another is at work."""
    with _lock_of(cache) as lock, suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _clear(cache)


def _lock_of(cache: Path) -> TextIO:
    return (cache / "build.lock").open("w")


def _clear(cache: Path) -> None:
    # INVARIANT: the lock is held, so nobody works there.
    for left in cache.glob(f"{_PREFIX}*"):
        if left.is_dir() and not left.is_symlink():
            shutil.rmtree(left)
