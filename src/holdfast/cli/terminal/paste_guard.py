"""Enter in a paste, on a terminal that does not mark pastes: a line break, and never the end of a message."""

from collections.abc import Callable

BURST_SECONDS = 0.02
"""Keys with less time between them come from a paste, or waited in the terminal together. Key repeat is slower."""
PAUSE_SECONDS = 0.1
"""How long nothing may arrive until a paste is over. A terminal hands a long one over in pieces."""


class PasteGuard:
    """Watches the time between keys, and counts the line breaks of a burst."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._last = self._before = monotonic() - PAUSE_SECONDS
        self.line_breaks = 0
        """In the burst that has not ended yet."""

    def press(self) -> None:
        """Record a key press."""
        self._before, self._last = self._last, self._monotonic()

    def is_line_break(self, *, has_more: bool) -> bool:
        """Whether the Enter that was pressed last belongs to a burst; `has_more` if other keys arrived with it."""
        return has_more or self._last - self._before < BURST_SECONDS

    def end(self) -> int:
        """The line breaks of the burst, which is over."""
        ended, self.line_breaks = self.line_breaks, 0
        return ended
