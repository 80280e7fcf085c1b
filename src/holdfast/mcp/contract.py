"""What the two ends promise. News comes from servers; the keeper is what the proxy asks in place of a server.

The proxy stands on the floor of the guests: it is handed the gate as a `GateClient` and cannot reach a server without it.
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
"""From the least important to the most."""


class ServerStarted(Value, tag_field="news", tag="started"):
    """A server answers; `seconds` is how long that took."""

    server: str
    tools: int
    seconds: float
    protocol: str


class ServerFailed(Value, tag_field="news", tag="failed"):
    """A server did not start, or ended unasked."""

    server: str
    reason: str


class ToolsPendingReview(Value, tag_field="news", tag="held"):
    """Tools that differ from what the person has seen; they cannot be called until then."""

    server: str
    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    is_other_server: bool = False


class Progressed(Value, tag_field="news", tag="progressed"):
    """A call is this far."""

    call: CallId
    progress: float
    total: float | None = None
    message: str = ""


class ListChanged(Value, tag_field="news", tag="list-changed"):
    """A server says that its offer changed."""

    server: str
    what: Literal["tools", "resources", "prompts"]


class ResourceChanged(Value, tag_field="news", tag="resource-changed"):
    """A server says that a resource changed."""

    server: str
    uri: str


class Logged(Value, tag_field="news", tag="logged"):
    """A server says something to whoever reads its log."""

    server: str
    level: LogLevel
    data: Json
    logger: str = ""


ServerNotification = (
    ServerStarted | ServerFailed | ToolsPendingReview | Progressed | ListChanged | ResourceChanged | Logged
)
Listener = Callable[[ServerNotification], None]
"""Told the news as it comes. It must not raise and must not wait."""


class GateClient(Protocol):
    """The gate as the proxy sees it."""

    def tools(self) -> tuple[Tool, ...]:
        """What a client may be shown."""
        ...

    async def next_call(self) -> CallId:
        """The id of the next call of this session."""
        ...

    async def submit(self, call: Call) -> Answer:
        """Judge and carry out a call. Asked again with a call that waited, it goes on with it."""
        ...

    async def wait(self, escalation: EscalationId) -> None:
        """Return when the escalation is settled: answered, expired, or cancelled."""
        ...

    def escalation(self, escalation: EscalationId) -> Escalation | None:
        """What waits under this id; None where it is settled."""
        ...

    async def resolve(
        self, escalation: EscalationId, response: Response, *, principal: Principal, transport: str
    ) -> None:
        """Record an answer. Raises EscalationUnknown where another came first."""
        ...
