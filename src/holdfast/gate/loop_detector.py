"""Loops: an agent that does the same and gets the same. Noticed per turn, and forgotten with it."""

from typing import Literal

from holdfast.core import digest
from holdfast.core.events import CodePosted, MessagePosted, ModelReplied, RecordedEvent, ToolReturned
from holdfast.core.projection import Projection

SAME_WARN, SAME_BLOCK = 3, 5
"""The same tool call with the same result."""
STUCK_WARN, STUCK_BLOCK = 5, 8
"""Other calls, still the same result; or nothing in a row that has not been seen in this turn, as when two calls alternate."""


_Heeded = MessagePosted | CodePosted | ModelReplied | ToolReturned


class LoopDetector(Projection[_Heeded]):
    """Counts how often in a row the agent's calls brought nothing new; any new result starts anew."""

    def reset(self) -> None:
        self._asked: dict[str, str] = {}
        self._last: tuple[str, str] = ("", "")
        self._same = 0
        self._stuck = 0
        self._pairs: set[tuple[str, str]] = set()
        self._known = 0

    def apply(self, event: _Heeded, entry: RecordedEvent) -> None:
        match event:
            case MessagePosted() | CodePosted():
                self.reset()
            case ModelReplied():
                self._asked = {
                    part.id: digest([part.tool, part.arguments]) for part in event.message.tool_calls
                }
            case ToolReturned():
                self._observe(self._asked.get(event.tool_call, ""), digest(event.content))

    @property
    def verdict(self) -> Literal["fine", "warn", "block"]:
        """Whether the turn may go on."""
        stuck = max(self._stuck, self._known)
        if self._same >= SAME_BLOCK or stuck >= STUCK_BLOCK:
            return "block"
        return "warn" if self._same >= SAME_WARN or stuck >= STUCK_WARN else "fine"

    @property
    def length(self) -> int:
        """How many results in a row were nothing new."""
        return max(self._same, self._stuck, self._known)

    def _observe(self, asked: str, result: str) -> None:
        before_asked, before_result = self._last
        self._stuck = self._stuck + 1 if result == before_result else 1
        self._same = self._same + 1 if (asked, result) == (before_asked, before_result) else 1
        self._last = asked, result
        self._known = self._known + 1 if self._last in self._pairs else 0
        self._pairs.add(self._last)
