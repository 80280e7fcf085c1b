"""Which keys count at an approval. A key that was meant for something else must never be a yes.

A question may appear while a person types. So no key counts in the first moments after it appeared, and no key counts that
is part of a burst: it has to stand alone, with silence before it and after it.
"""

from holdfast.core import Clock

SETTLE_SECONDS = 0.4
"""How long a question is on the screen before any key counts."""
QUIET_SECONDS = 0.15
"""How much silence a key needs around it. Typing, pasting and key repeat are all faster."""


class KeyGuard:
    """Watches the keys after a question appeared, and lets one through when it was surely meant."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._shown = clock.monotonic()
        self._last = self._shown
        self._candidate: str | None = None

    def press(self, key: str) -> None:
        """A key came in."""
        now = self._clock.monotonic()
        stands_alone = now - self._last >= QUIET_SECONDS
        has_settled = now - self._shown >= SETTLE_SECONDS
        # Whatever waited for silence after it did not get it.
        self._candidate = key if stands_alone and has_settled else None
        self._last = now

    def chosen(self) -> str | None:
        """The key that counts, once there was silence after it; it is given once."""
        if self._candidate is None or self._clock.monotonic() - self._last < QUIET_SECONDS:
            return None
        key, self._candidate = self._candidate, None
        return key
