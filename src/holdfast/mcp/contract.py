"""The contracts of both MCP sides: the notifications of servers, and the gate as the proxy sees it.

The proxy is in a lower layer than the gate. It is given the gate as a `GateClient` and has no other way to a server.
"""

from collections.abc import Callable
from typing import Literal, Protocol, get_args

from holdfast.core import (
    Answer,
    Call,
    CallId,
    Escalation,
    EscalationId,
    Json,
    Principal,
    Response,
    Tool,
    Value,
)

LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
LOG_LEVELS: tuple[LogLevel, ...] = get_args(LogLevel)
"""In ascending order of severity."""


def is_legacy(protocol_version: str) -> bool:
    """Whether a protocol version predates 2026-07-28, which replaced unsolicited notifications by streams."""
    return protocol_version < "2026"


class ServerStarted(Value, tag_field="news", tag="started"):
    """A server answers. `seconds` is the time it took to start."""

    server: str
    tools: int
    seconds: float
    protocol: str


class ServerFailed(Value, tag_field="news", tag="failed"):
    """A server did not start, or ended on its own."""

    server: str
    reason: str


class ToolsPendingReview(Value, tag_field="news", tag="held"):
    """A server's tools differ from the accepted ones. They cannot be called until a person reviews them."""

    server: str
    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    is_other_server: bool = False


class Progressed(Value, tag_field="news", tag="progressed"):
    """A call reports progress."""

    call: CallId
    progress: float
    total: float | None = None
    message: str = ""


class ListChanged(Value, tag_field="news", tag="list-changed"):
    """A server announces that one of its lists changed."""

    server: str
    what: Literal["tools", "resources", "prompts"]


class ResourceChanged(Value, tag_field="news", tag="resource-changed"):
    """A server announces that a resource changed."""

    server: str
    uri: str


class Logged(Value, tag_field="news", tag="logged"):
    """A server sends a log message."""

    server: str
    level: LogLevel
    data: Json
    logger: str = ""


ServerNotification = (
    ServerStarted | ServerFailed | ToolsPendingReview | Progressed | ListChanged | ResourceChanged | Logged
)
Listener = Callable[[ServerNotification], None]
"""Receives each notification as it arrives. It must not raise and must not block."""


class GateClient(Protocol):
    """The gate as the proxy sees it."""

    def tools(self) -> tuple[Tool, ...]:
        """The tools that a client may see."""
        ...

    async def next_call(self) -> CallId:
        """The id of the next call of this session."""
        ...

    async def submit(self, call: Call) -> Answer:
        """Judge and execute a call. Submitting a parked call again resumes it."""
        ...

    async def wait(self, escalation: EscalationId) -> None:
        """Return when the escalation is answered, expired or cancelled."""
        ...

    def escalation(self, escalation: EscalationId) -> Escalation | None:
        """The open escalation with this id; None if it is settled."""
        ...

    async def resolve(
        self, escalation: EscalationId, response: Response, *, principal: Principal, transport: str
    ) -> None:
        """Record an answer. Raises EscalationUnknown if another answer came first."""
        ...
