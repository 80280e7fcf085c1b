"""The limits of one run: what is left of each, and the error that the author of the code reads when one is reached."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.guests.contract import GuestLimits
from holdfast.guests.python.state import RunProgress


class LimitReached(Exception):
    """The run reached a limit. The message names the limit and says what to do."""


class LimitTracker:
    """Tracks the time and calls of one run, and words the error of each limit. Usage before a wait counts after it."""

    def __init__(self, limits: GuestLimits, progress: RunProgress, *, first_limits: GuestLimits) -> None:
        self._limits = limits
        self._first_limits = first_limits
        """The limits of the first run, which the interpreter keeps."""
        self._progress = progress
        self._started = time.monotonic()
        self._waited = 0.0

    @property
    def value_bytes(self) -> int:
        """What one call may carry."""
        return self._limits.value_bytes

    @property
    def seconds_left(self) -> float:
        """Computing time that is left."""
        return self._limits.seconds - self._progress.seconds

    @property
    def wall_seconds_left(self) -> float:
        """Total time that is left, not counting waits for calls."""
        used = self._progress.wall_seconds + time.monotonic() - self._started - self._waited
        return self._limits.wall_seconds - used

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Count this block as computing time."""
        started = time.monotonic()
        try:
            yield
        finally:
            self._progress.seconds += time.monotonic() - started

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Count a call, and do not count the wait for its answer. Raises LimitReached after too many calls."""
        self._progress.calls += 1
        if self._progress.calls > self._limits.calls:
            raise LimitReached(
                f"The code made more than {self._limits.calls} calls. Do the work in several runs."
            )
        started = time.monotonic()
        try:
            yield
        finally:
            self._waited += time.monotonic() - started

    def pause(self) -> None:
        """Save the total time used so far, before the run is parked."""
        self._progress.wall_seconds = self._limits.wall_seconds - self.wall_seconds_left

    async def sleep(self, seconds: float) -> None:
        """Sleep for the code. Raises LimitReached at once if the sleep cannot end in time."""
        if not seconds <= self.wall_seconds_left:
            raise LimitReached(f"The code wants to sleep longer than its {self._limits.wall_seconds:g} s.")
        await asyncio.sleep(max(0.0, seconds))

    def out_of_time(self) -> LimitReached:
        """The error for too much computing time."""
        kept = self._first_limits.seconds
        if kept < self._limits.seconds:
            return LimitReached(
                f"The code ran longer than {kept:g} s, the computing time that this session's first run had, and its interpreter "
                "keeps that limit. Do less in one run, or run it in a new session."
            )
        return LimitReached(f"The code ran longer than {self._limits.seconds:g} s. Do less in one run.")

    def out_of_wall_time(self) -> LimitReached:
        """The error for too much total time."""
        seconds = self._limits.wall_seconds
        return LimitReached(
            f"The run took longer than {seconds:g} s, waiting for calls not counted. Do less in one run."
        )

    def out_of_memory(self) -> LimitReached:
        """The error for too much memory."""
        megabytes = self._limits.memory_bytes >> 20
        return LimitReached(f"The code used more than {megabytes} MB of memory. Work on less at once.")

    def message_too_long(self) -> LimitReached:
        """The error for a value that is too large to leave the sandbox."""
        return LimitReached(
            f"The code passed more than {self._limits.value_bytes >> 20} MB at once out of the sandbox: in a call, as the value of "
            "its last line, or in an error. Pass less at once, or raise code.value_bytes in config.toml."
        )

    def too_much_output(self) -> LimitReached:
        """The error for too much output."""
        return LimitReached(f"The code printed more than {self._limits.output_bytes} bytes. Print less.")


class OutputBuffer:
    """Collects what a run prints. The print that exceeds the limit ends the run."""

    def __init__(self, *, max_bytes: int, before: str = "") -> None:
        self._parts = [before]
        self._bytes_left = max_bytes - len(before.encode())
        self.is_full = False

    @property
    def text(self) -> str:
        """All output so far."""
        return "".join(self._parts)

    def __call__(self, _stream: str, text: str) -> None:
        size = len(text.encode())
        if size <= self._bytes_left:
            self._parts.append(text)
            self._bytes_left -= size
            return
        self._parts.append(text.encode()[: max(0, self._bytes_left)].decode(errors="ignore"))
        self._bytes_left = 0
        self.is_full = True
        # The interpreter ends a run whose print callback fails; guest code cannot catch that.
        raise OverflowError("too much output")
