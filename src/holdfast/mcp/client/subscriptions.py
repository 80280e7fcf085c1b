"""Wishes: what clients want a server to tell unasked. They outlive its process and are made again when it restarts."""

from holdfast.core.errors import ToolFailed
from holdfast.mcp.contract import LOG_LEVELS, LogLevel

MAX_RESOURCES = 64
"""Of one server, over all clients. In the newer era each is a stream that stays open."""


class Subscriptions:
    """What one server has been asked for."""

    def __init__(self) -> None:
        self.log_level: LogLevel | None = None
        """The least important messages that anybody wants; None leaves it to the server."""
        self.resources: set[str] = set()
        """Whose changes somebody wants to hear of."""

    def lower(self, level: LogLevel) -> bool:
        """Want messages from this level on; whether that is more than before. Clients that want less leave them out."""
        if self.log_level is not None and LOG_LEVELS.index(self.log_level) <= LOG_LEVELS.index(level):
            return False
        self.log_level = level
        return True

    def add(self, uri: str) -> None:
        """Want the changes of a resource. Raises ToolFailed where that is one too many."""
        if uri not in self.resources and len(self.resources) >= MAX_RESOURCES:
            raise ToolFailed(f"changes of {MAX_RESOURCES} resources of this server are wanted already")
        self.resources.add(uri)
