"""A ration: how much a server may say without being asked."""

from holdfast.core import Clock


class Ration:
    """A bucket that fills with time. What does not fit is dropped and counted, never queued."""

    def __init__(self, clock: Clock, *, burst: int = 256, per_second: float = 64.0) -> None:
        self._clock = clock
        self._burst = burst
        self._per_second = per_second
        self._left = float(burst)
        self._at = clock.monotonic()
        self.dropped = 0

    def take(self) -> bool:
        """Whether one more may pass."""
        now = self._clock.monotonic()
        self._left = min(self._burst, self._left + (now - self._at) * self._per_second)
        self._at = now
        if self._left < 1:
            self.dropped += 1
            return False
        self._left -= 1
        return True
