"""What happens in a turn: what was asked, the model, the guest, the end."""

from typing import Literal

from holdfast.core.events.base import Event
from holdfast.core.ids import CallId, EscalationId, Principal
from holdfast.core.limits import NOTHING, Amount
from holdfast.core.messages import Finish, ModelMessage, Usage
from holdfast.core.outcomes import Outcome
from holdfast.core.values import Json


class MessagePosted(Event, tag="message-posted"):
    """A message began a turn."""

    turn: int
    text: str
    principal: Principal
    transport: str = ""
    message: str = ""
    """The sender's own id of it, where it has one: the same message twice is one turn."""


class CodePosted(Event, tag="code-posted"):
    """Code from the host began a turn; no model is asked."""

    turn: int
    code: str
    language: str
    principal: Principal


class ModelAsked(Event, tag="model-asked"):
    """The model is about to be asked; without a reply after it, the request may have been paid for nothing."""

    turn: int
    step: int
    model: str
    reserved: Amount = NOTHING


class ModelReplied(Event, tag="model-replied"):
    """The model answered."""

    turn: int
    step: int
    model: str
    message: ModelMessage
    usage: Usage
    finish: Finish = "stop"


class ModelFailed(Event, tag="model-failed"):
    """The model did not answer; `usage` is what was paid all the same."""

    turn: int
    step: int
    code: str
    reason: str
    usage: Usage = Usage()


class RunStarted(Event, tag="run-started"):
    """A guest began to run code. Seed and start time make a second run of it the same run."""

    turn: int
    run: int
    code: str
    engine: str
    reason: str = ""
    tool_call: str | None = None
    first_call: int
    seed: int
    started_ms: int
    state: str | None = None
    """The blob with the guest's state before it, None for a fresh one."""
    facts: tuple[str, ...] = ()
    """Of the first run in a process: the engine's version and what it can do here, which walls stand below it included."""


class RunParked(Event, tag="run-parked"):
    """A guest stopped in the middle of a line because its call waits for a person."""

    turn: int
    run: int
    call: CallId
    escalation: EscalationId
    snapshot: str | None
    """The blob to go on from; None means that it goes on by replay."""
    printed: str = ""


RunStatus = Literal["ok", "error", "limit", "lost"]


class RunEnded(Event, tag="run-ended"):
    """A guest's run is over; `state` names the blob with its state afterwards, `error` what the model is shown."""

    turn: int
    run: int
    status: RunStatus
    value: Json = None
    printed: str = ""
    error: str = ""
    state: str | None = None
    engine: str = ""
    """Which engine ran it, where one was chosen for this code."""
    engine_reason: str = ""
    """Why that one."""


class ToolReturned(Event, tag="tool-returned"):
    """What the model is told of one of its tool calls, word for word."""

    turn: int
    tool_call: str
    tool: str
    content: str
    is_error: bool = False


class TurnEnded(Event, tag="turn-ended"):
    """The agent rests. `wall_seconds` is what the turn took while it was worked on, without waiting for a person."""

    turn: int
    outcome: Outcome
    wall_seconds: float = 0.0


class TurnParked(Event, tag="turn-parked"):
    """A turn waits for a person, or the session was let go; `wall_seconds` is what it was worked on since it last began to be."""

    turn: int
    wall_seconds: float


class TurnReopened(Event, tag="turn-reopened"):
    """A turn that a budget stopped goes on where it was, because the budget was raised."""

    turn: int


class HistoryCompacted(Event, tag="history-compacted"):
    """Turns up to and with `through` are given to the model as this summary; the originals stay in the journal."""

    through: int
    summary: str
    usage: Usage = Usage()
