"""Time as an argument: what needs the hour is handed a clock, and a test hands in one that stands still."""

import time
from typing import Protocol


class Clock(Protocol):
    """The time of day and a time that never goes back."""

    def now_ms(self) -> int:
        """Milliseconds since 1970, UTC; may be set back by its owner."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


class FakeClock:
    """A clock that moves only when told to."""

    def __init__(self, now_ms: int = 1_767_225_600_000) -> None:  # 2026-01-01T00:00:00Z
        self._now_ms = now_ms
        self._monotonic = 0.0

    def now_ms(self) -> int:
        return self._now_ms

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._now_ms += round(seconds * 1000)
        self._monotonic += seconds

    def set_back(self, seconds: float) -> None:
        """Set the time of day back, as an administrator or a bad battery does; monotonic time goes on."""
        self._now_ms -= round(seconds * 1000)
