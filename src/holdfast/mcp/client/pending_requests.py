"""A ledger: what a server was asked and has not answered. What it sends is an answer to that, or it broke the protocol.

Without it, an answer that fits no request is dropped, and the call that it was meant for waits until its time is up.
"""

from collections.abc import Iterable

import mcp_types
import msgspec
from mcp.shared.dispatcher import coerce_request_id

from holdfast.core import Json, JsonObject, escape_invisible

_ANSWERS = ("result", "error")
_MAX_SHOWN = 40
_MAX_PARTS = 20_000
"""Objects in one answer. The library makes something of each, and nobody else in this process is heard meanwhile."""
TOO_MANY_PARTS = f"it sent an answer of more than {_MAX_PARTS:,} parts"
_DATA = frozenset({"structuredContent", "inputSchema", "outputSchema", "_meta"})
"""What the library makes nothing of."""


class ProtocolBroken(Exception):
    """A server sent what cannot be an answer to anything; nothing after it can be trusted to be one either."""

    def __init__(self, how: str) -> None:
        super().__init__(f"broke the protocol: {how}")


class PendingRequests:
    """The requests to one server that are open."""

    def __init__(self) -> None:
        self._open: set[mcp_types.RequestId] = set()
        self._notices = 0
        """How many messages it got that have no answer; to one of these an error without an id may belong."""

    def sent(self, message: mcp_types.JSONRPCMessage) -> None:
        """We said this."""
        match message:
            case mcp_types.JSONRPCRequest():
                self._open.add(coerce_request_id(message.id))
            case mcp_types.JSONRPCNotification():
                self._notices += 1
            case _:
                pass

    def heard(self, message: mcp_types.JSONRPCMessage) -> None:
        """It said this. Raises ProtocolBroken where that is the answer to nothing; one that comes late is one."""
        match message:
            case mcp_types.JSONRPCError(id=None) if self._notices:
                self._notices -= 1
            case mcp_types.JSONRPCError(id=None):
                raise ProtocolBroken("it sent an error that belongs to no request")
            case mcp_types.JSONRPCResponse(id=id) | mcp_types.JSONRPCError(id=id) if id is not None:
                if coerce_request_id(id) not in self._open:
                    raise ProtocolBroken(
                        f"it answered request {escape_invisible(str(id))[:_MAX_SHOWN]!r}, which is not open"
                    )
                self._open.discard(coerce_request_id(id))
                if isinstance(message, mcp_types.JSONRPCResponse) and has_too_many_parts(message.result):
                    raise ProtocolBroken(TOO_MANY_PARTS)
            case _:
                pass

    def heard_noise(self, line: bytes) -> None:
        """It sent a line that is no message. Raises ProtocolBroken where it was meant to be an answer."""
        if b'"jsonrpc"' not in line:
            return  # servers print stray lines to standard output; that alone is no reason to give one up
        try:
            said = msgspec.json.decode(line)
        except (ValueError, RecursionError):  # no JSON, or no UTF-8 in it
            raise ProtocolBroken("it sent a message that is not whole") from None
        if isinstance(said, dict) and any(key in said for key in _ANSWERS):
            raise ProtocolBroken("it sent an answer of the wrong shape")


def has_too_many_parts(result: JsonObject) -> bool:
    """Whether it is more than the library may be given to make something of."""
    waiting: list[JsonObject | list[Json]] = [result]
    parts = 0
    while waiting and parts <= _MAX_PARTS:
        value = waiting.pop()
        if isinstance(value, list):
            inner: Iterable[Json] = value
        else:
            parts += 1
            inner = (each for name, each in value.items() if name not in _DATA)
        waiting.extend(each for each in inner if isinstance(each, dict | list))
    return parts > _MAX_PARTS
