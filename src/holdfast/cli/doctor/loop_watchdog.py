"""A watchdog of the event loop: which callbacks use more CPU time than a loop that many sessions share can spare.

CPU time of the loop's own thread, not the clock: a busy machine or a thread that holds the interpreter does not count.
"""

import asyncio
import sys
import threading
import time
from types import FrameType, TracebackType
from typing import Any

from holdfast.core import Value

LIMIT_SECONDS = 0.02
_SAMPLE_SECONDS = 0.005
_HANDLE: Any = asyncio.Handle
"""Its `_run` is the one place through which every callback goes; there is no public hook."""


class BlockedLoop(Value):
    """One callback that used too much time, and the line of ours that it was in when the time was up."""

    milliseconds: float
    what: str
    where: str


class LoopWatchdog:
    """Measures every callback of the event loop of this thread while it is active."""

    def __init__(self, limit_seconds: float = LIMIT_SECONDS) -> None:
        self._limit = limit_seconds
        self._thread = threading.get_ident()
        self._started: float | None = None
        self._where = ""
        self._stopped = threading.Event()
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._run: Any = None
        self.blocked: list[BlockedLoop] = []
        """The callbacks over the limit, in order."""
        self.longest_seconds = 0.0

    def __enter__(self) -> "LoopWatchdog":
        self._run = original = _HANDLE._run

        def measured(handle: asyncio.Handle) -> None:
            if threading.get_ident() != self._thread:
                original(handle)
                return
            self._started, self._where = time.monotonic(), ""
            before = time.thread_time()
            try:
                original(handle)
            finally:
                self._record(time.thread_time() - before, handle)
                self._started = None

        _HANDLE._run = measured
        self._sampler.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _HANDLE._run = self._run
        self._stopped.set()
        self._sampler.join()

    def _record(self, seconds: float, handle: asyncio.Handle) -> None:
        self.longest_seconds = max(self.longest_seconds, seconds)
        if seconds > self._limit:
            blocked = BlockedLoop(
                milliseconds=round(seconds * 1000, 1), what=_name(handle), where=self._where
            )
            self.blocked.append(blocked)

    def _sample(self) -> None:
        """In a thread: note where the loop is while a callback takes long."""
        while not self._stopped.wait(_SAMPLE_SECONDS):
            started = self._started
            if started is not None and time.monotonic() - started > self._limit / 2:
                frame = sys._current_frames().get(self._thread)
                self._where = _our_line(frame) or self._where


def _name(handle: asyncio.Handle) -> str:
    """The coroutine of a task, or the function of a callback."""
    callback: Any = getattr(handle, "_callback", None)
    task = getattr(callback, "__self__", None)
    work = task.get_coro() if isinstance(task, asyncio.Task) else callback
    return str(getattr(work, "__qualname__", None) or repr(work)[:100])


def _our_line(frame: FrameType | None) -> str:
    """The innermost lines of this package in a stack, outermost first."""
    found: list[str] = []
    while frame is not None and len(found) < 3:
        file = frame.f_code.co_filename
        if "/holdfast/" in file and not file.endswith("loop_watchdog.py"):
            found.append(f"{file.rpartition('/holdfast/')[2]}:{frame.f_lineno}")
        frame = frame.f_back
    return " > ".join(reversed(found))
