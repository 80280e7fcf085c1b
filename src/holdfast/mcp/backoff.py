"""Backoff: how long a server that fails is left alone."""

from holdfast.core import Clock

FIRST_SECONDS = 1.0
LONGEST_SECONDS = 60.0


class Backoff:
    """After the first failure none: one crash is an accident. From the second on it doubles, for then it is a habit."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._not_before = 0.0
        self.failures = 0

    @property
    def seconds_left(self) -> float:
        """How long it is to be left alone still; 0 or less when it may be tried."""
        return self._not_before - self._clock.monotonic()

    def failed(self) -> None:
        """It failed once more."""
        doubled = FIRST_SECONDS * 2 ** min(self.failures - 1, 10)
        self._not_before = self._clock.monotonic() + (min(LONGEST_SECONDS, doubled) if self.failures else 0.0)
        self.failures += 1

    def succeeded(self) -> None:
        """It answered: what was before is forgotten."""
        self.failures = 0
