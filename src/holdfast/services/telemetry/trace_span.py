"""A span of a trace, and the contract of what sends spans."""

from collections.abc import Mapping
from typing import Protocol

from holdfast.core import Value


class TraceSpan(Value):
    """Something that began and ended, in nanoseconds."""

    name: str
    start: int
    end: int
    attributes: Mapping[str, object]
    trace: int
    """The turn that it belongs to."""
    id: int = 0
    """Of the span of a turn; others get one."""
    parent: int = 0


class SpanExporter(Protocol):
    """Sends spans somewhere."""

    def export(self, span: TraceSpan) -> None:
        """Send a span, later if that takes time. It must not raise."""
        ...
