"""The base of all events."""

from holdfast.core.values import Value, kebab


class Event(Value, tag_field="event", tag=kebab):
    """Base of all events."""
