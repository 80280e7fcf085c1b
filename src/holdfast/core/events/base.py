"""`Event`, the base class of all events."""

from holdfast.core.values import Value


class Event(Value, tag_field="event"):
    """An entry of the journal. Every subclass spells out its tag: the tag is on disk and outlives the class name."""


def event_types() -> tuple[type[Event], ...]:
    """Every kind of event."""
    return tuple(Event.__subclasses__())
