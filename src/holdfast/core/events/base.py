"""The base of all events."""

from holdfast.core.values import Value


class Event(Value, tag_field="event"):
    """Base of all events. Each event names its tag: the tag is on disk and outlives the name of the class."""
