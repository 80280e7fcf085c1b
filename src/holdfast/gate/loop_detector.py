"""Loops: an agent that does the same and gets the same. Noticed per turn, and forgotten with it."""

from typing import Literal

from holdfast.core import digest
from holdfast.core.events import CodePosted, MessagePosted, ModelReplied, RecordedEvent, ToolReturned
from holdfast.core.projection import Projection

REPEAT_WARN, REPEAT_BLOCK = 3, 5
"""The same tool call with the same result."""
STUCK_WARN, STUCK_BLOCK = 5, 8
"""Other calls, still the same result; or nothing in a row that has not been seen in this turn, as when two calls alternate."""


_Handled = MessagePosted | CodePosted | ModelReplied | ToolReturned


class LoopDetector(Projection[_Handled]):
    """Counts how often in a row the agent's calls brought nothing new; any new result starts anew."""

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
        """Whether the turn may go on."""
        stuck = max(self._stuck, self._seen_in_row)
        if self._repeats >= REPEAT_BLOCK or stuck >= STUCK_BLOCK:
            return "block"
        return "warn" if self._repeats >= REPEAT_WARN or stuck >= STUCK_WARN else "fine"

    @property
    def length(self) -> int:
        """How many results in a row were nothing new."""
        return max(self._repeats, self._stuck, self._seen_in_row)

    def _observe(self, request: str, result: str) -> None:
        previous_request, previous_result = self._last
        self._stuck = self._stuck + 1 if result == previous_result else 1
        self._repeats = self._repeats + 1 if (request, result) == (previous_request, previous_result) else 1
        self._last = request, result
        self._seen_in_row = self._seen_in_row + 1 if self._last in self._seen else 0
        self._seen.add(self._last)
