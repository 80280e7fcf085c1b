"""The pending JSON-RPC requests to one server, and the check that each response answers one of them.

Without this check the library drops a response that matches no request, and the call it was meant for waits for its
timeout.
"""

from collections.abc import Iterable

import mcp_types
import msgspec
from mcp.shared.dispatcher import coerce_request_id

from holdfast.core import Json, JsonObject, escape_invisible

_RESPONSE_KEYS = ("result", "error")
_MAX_SHOWN_CHARACTERS = 40
_MAX_OBJECTS = 20_000
"""JSON objects in one response. The library builds a model of each, and that blocks the event loop."""
TOO_MANY_OBJECTS = f"it sent a response with more than {_MAX_OBJECTS:,} objects"
_OPAQUE_KEYS = frozenset({"structuredContent", "inputSchema", "outputSchema", "_meta"})
"""Values that the library keeps as plain JSON."""


class ProtocolViolation(Exception):
    """A server sent a response that answers nothing, so its later responses cannot be trusted either."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"broke the protocol: {detail}")


class PendingRequests:
    """The requests to one server that have no response yet."""

    def __init__(self) -> None:
        self._open: set[mcp_types.RequestId] = set()
        self._notifications = 0
        """How many notifications were sent. An error without an id may be the reaction to one of them."""

    def record_sent(self, message: mcp_types.JSONRPCMessage) -> None:
        """Record a message to the server."""
        match message:
            case mcp_types.JSONRPCRequest():
                self._open.add(coerce_request_id(message.id))
            case mcp_types.JSONRPCNotification():
                self._notifications += 1
            case _:
                pass

    def record_received(self, message: mcp_types.JSONRPCMessage) -> None:
        """Record a message from the server. Raises ProtocolViolation for a response to no open request."""
        match message:
            case mcp_types.JSONRPCError(id=None) if self._notifications:
                self._notifications -= 1
            case mcp_types.JSONRPCError(id=None):
                raise ProtocolViolation("it sent an error that belongs to no request")
            case mcp_types.JSONRPCResponse(id=id) | mcp_types.JSONRPCError(id=id) if id is not None:
                if coerce_request_id(id) not in self._open:
                    shown = escape_invisible(str(id))[:_MAX_SHOWN_CHARACTERS]
                    raise ProtocolViolation(f"it answered request {shown!r}, which is not open")
                self._open.discard(coerce_request_id(id))
                if isinstance(message, mcp_types.JSONRPCResponse) and has_too_many_objects(message.result):
                    raise ProtocolViolation(TOO_MANY_OBJECTS)
            case _:
                pass

    def record_invalid_line(self, line: bytes) -> None:
        """Record a line that is not a message. Raises ProtocolViolation if it was meant to be a response."""
        if b'"jsonrpc"' not in line:
            return  # many servers print stray lines to standard output
        try:
            decoded = msgspec.json.decode(line)
        except (ValueError, RecursionError):  # invalid JSON or invalid UTF-8
            raise ProtocolViolation("it sent an incomplete message") from None
        if isinstance(decoded, dict) and any(key in decoded for key in _RESPONSE_KEYS):
            raise ProtocolViolation("it sent a malformed response")


def has_too_many_objects(result: JsonObject) -> bool:
    """Whether a result has more objects than the library may be given."""
    remaining: list[JsonObject | list[Json]] = [result]
    objects = 0
    while remaining and objects <= _MAX_OBJECTS:
        value = remaining.pop()
        if isinstance(value, list):
            inner: Iterable[Json] = value
        else:
            objects += 1
            inner = (each for name, each in value.items() if name not in _OPAQUE_KEYS)
        remaining.extend(each for each in inner if isinstance(each, dict | list))
    return objects > _MAX_OBJECTS
