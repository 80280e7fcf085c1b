"""Loop detection: an agent that repeats itself and gets the same results. Per turn; a new turn starts from zero."""

from typing import Literal

from holdfast.core import digest
from holdfast.core.events import CodePosted, MessagePosted, ModelReplied, RecordedEvent, ToolReturned
from holdfast.core.projection import Projection

REPEAT_WARN, REPEAT_BLOCK = 3, 5
"""Thresholds for the same tool call with the same result."""
STUCK_WARN, STUCK_BLOCK = 5, 8
"""Thresholds for different calls with the same result, or for calls that were all seen before in this turn, such as two that alternate."""


_Handled = MessagePosted | CodePosted | ModelReplied | ToolReturned


class LoopDetector(Projection[_Handled]):
    """Counts how many calls in a row brought nothing new. Any new result resets the count."""

    def reset(self) -> None:
        self._requests: dict[str, str] = {}
        self._last: tuple[str, str] = ("", "")
        self._repeats = 0
        self._stuck = 0
        self._seen: set[tuple[str, str]] = set()
        self._seen_in_row = 0

    def apply(self, event: _Handled, entry: RecordedEvent) -> None:
        match event:
            case MessagePosted() | CodePosted():
                self.reset()
            case ModelReplied():
                self._requests = {
                    part.id: digest([part.tool, part.arguments]) for part in event.message.tool_calls
                }
            case ToolReturned():
                self._observe(self._requests.get(event.tool_call, ""), digest(event.content))

    @property
    def level(self) -> Literal["fine", "warn", "block"]:
        """Whether the turn may continue."""
        stuck = max(self._stuck, self._seen_in_row)
        if self._repeats >= REPEAT_BLOCK or stuck >= STUCK_BLOCK:
            return "block"
        return "warn" if self._repeats >= REPEAT_WARN or stuck >= STUCK_WARN else "fine"

    @property
    def length(self) -> int:
        """How many results in a row brought nothing new."""
        return max(self._repeats, self._stuck, self._seen_in_row)

    def _observe(self, request: str, result: str) -> None:
        previous_request, previous_result = self._last
        self._stuck = self._stuck + 1 if result == previous_result else 1
        self._repeats = self._repeats + 1 if (request, result) == (previous_request, previous_result) else 1
        self._last = request, result
        self._seen_in_row = self._seen_in_row + 1 if self._last in self._seen else 0
        self._seen.add(self._last)
