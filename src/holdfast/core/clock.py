"""Clocks. Code that needs the time takes a clock as an argument, so that a test can pass a fake one."""

import time
from typing import Protocol


class Clock(Protocol):
    """Wall-clock time and monotonic time."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, UTC; an administrator can set it back."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back."""
        ...


class SystemClock:
    """The clocks of the machine."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


class FakeClock:
    """A clock that moves only when a test moves it."""

    def __init__(self, now_ms: int = 1_767_225_600_000) -> None:  # 2026-01-01T00:00:00Z
        self._now_ms = now_ms
        self._monotonic = 0.0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Move both clocks forward."""
        self._now_ms += round(seconds * 1000)
        self._monotonic += seconds

    def set_back(self, seconds: float) -> None:
        """Set the wall clock back, as an administrator or a bad battery does; monotonic time is unaffected."""
        self._now_ms -= round(seconds * 1000)
