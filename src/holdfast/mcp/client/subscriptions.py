"""The subscriptions to one server's notifications. They outlive its process and are renewed when it restarts."""

from holdfast.core.errors import ToolFailed
from holdfast.mcp.contract import LOG_LEVELS, LogLevel

MAX_RESOURCES = 64
"""For one server, across all clients. With the 2026-07 protocol each is an open stream."""


class Subscriptions:
    """What one server has been asked to report."""

    def __init__(self) -> None:
        self.log_level: LogLevel | None = None
        """The lowest level that any client wants; None leaves the level to the server."""
        self.resources: set[str] = set()
        """The resources whose changes are wanted."""

    def lower_log_level(self, level: LogLevel) -> bool:
        """Request log messages from this level on. Returns whether the level changed; it is never raised."""
        if self.log_level is not None and LOG_LEVELS.index(self.log_level) <= LOG_LEVELS.index(level):
            return False
        self.log_level = level
        return True

    def add_resource(self, uri: str) -> None:
        """Request the changes of a resource. Raises ToolFailed over the limit."""
        if uri not in self.resources and len(self.resources) >= MAX_RESOURCES:
            raise ToolFailed(f"this server already has {MAX_RESOURCES} resource subscriptions, the maximum")
        self.resources.add(uri)
