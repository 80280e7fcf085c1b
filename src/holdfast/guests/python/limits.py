"""The bounds of a run, and what the author of the code is told at each of them.

What a run prints, kept up to a bound.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.guests.contract import GuestLimits
from holdfast.guests.python.state import Progress


class LimitReached(Exception):
    """A bound of the run was reached; the message says which, and what to do."""


class Bounds:
    """Keeps the time of one run, and words every bound. What was used before a wait counts after it."""

    def __init__(self, limits: GuestLimits, progress: Progress) -> None:
        self._limits = limits
        self._progress = progress
        self._started = time.monotonic()
        self._waited = 0.0

    @property
    def seconds_left(self) -> float:
        """Of the code's own running time."""
        return self._limits.seconds - self._progress.seconds

    @property
    def wall_seconds_left(self) -> float:
        """Of everything but waiting for calls."""
        used = self._progress.wall_seconds + time.monotonic() - self._started - self._waited
        return self._limits.wall_seconds - used

    @contextmanager
    def running(self) -> Iterator[None]:
        """While the code itself runs."""
        started = time.monotonic()
        try:
            yield
        finally:
            self._progress.seconds += time.monotonic() - started

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """While a call is answered. Raises LimitReached where there were too many."""
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
        """Note what was used, before a wait for a person."""
        self._progress.wall_seconds = self._limits.wall_seconds - self.wall_seconds_left

    def check_sleep(self, seconds: float) -> None:
        """Raises LimitReached for a sleep that could not end in time."""
        if not seconds <= self.wall_seconds_left:
            raise LimitReached(f"The code wants to sleep longer than its {self._limits.wall_seconds:g} s.")

    def out_of_time(self) -> LimitReached:
        """The code itself ran for too long."""
        return LimitReached(f"The code ran longer than {self._limits.seconds:g} s. Do less in one run.")

    def out_of_wall_time(self) -> LimitReached:
        """Code, sleeps and everything around it took too long."""
        seconds = self._limits.wall_seconds
        return LimitReached(
            f"The run took longer than {seconds:g} s, waiting for calls not counted. Do less in one run."
        )

    def out_of_steps(self) -> LimitReached:
        """The code made too many steps."""
        return LimitReached(f"The code made more than {self._limits.steps} steps. Do less in one run.")

    def out_of_memory(self) -> LimitReached:
        """The code's values do not fit."""
        megabytes = self._limits.memory_bytes >> 20
        return LimitReached(f"The code used more than {megabytes} MB of memory. Work on less at once.")

    def too_much_output(self) -> LimitReached:
        """The code printed too much."""
        return LimitReached(f"The code printed more than {self._limits.output_bytes} bytes. Print less.")


class Output:
    """Takes the interpreter's printed text; the print that goes past the bound ends the run."""

    def __init__(self, *, max_bytes: int, before: str = "") -> None:
        self._parts = [before]
        self._left = max_bytes - len(before.encode())
        self.is_full = False

    @property
    def text(self) -> str:
        """Everything so far."""
        return "".join(self._parts)

    def __call__(self, _stream: str, text: str) -> None:
        size = len(text.encode())
        if size <= self._left:
            self._parts.append(text)
            self._left -= size
            return
        self._parts.append(text.encode()[: max(0, self._left)].decode(errors="ignore"))
        self._left = 0
        self.is_full = True
        # The interpreter ends a run whose printing fails; guest code cannot catch that.
        raise OverflowError("too much output")
