"""Events of a turn: its message, the model, the guest and the end."""

from typing import Literal

from holdfast.core.calls import BlobRef
from holdfast.core.events.base import Event
from holdfast.core.ids import CallId, EscalationId, Principal
from holdfast.core.labels import Level, Origin
from holdfast.core.limits import NOTHING, Amount
from holdfast.core.messages import Attachment, Finish, ModelMessage, Usage
from holdfast.core.outcomes import Outcome
from holdfast.core.values import Json


class MessagePosted(Event, tag="message-posted"):
    """A message started a turn."""

    turn: int
    text: str
    principal: Principal
    transport: str = ""
    message: str = ""
    """The sender's own id of the message, if it has one: a message that arrives twice starts one turn."""
    attachments: tuple[Attachment, ...] = ()
    typed: int | None = None
    """How many characters of the text the sender wrote, if other text follows, such as that of files; else None."""
    quoted: tuple[str, ...] = ()
    """The digests of the files whose text follows."""

    @property
    def typed_text(self) -> str:
        """What the sender wrote."""
        return self.text[: self.typed]


class CodePosted(Event, tag="code-posted"):
    """Code from the host started a turn; no model is asked."""

    turn: int
    code: str
    language: str
    principal: Principal
    timeout_seconds: float | None = None
    """How long the host lets it run; None for the configured limits."""


class ModelAsked(Event, tag="model-asked"):
    """The model is about to be asked. Without a later reply, the request may have cost money for nothing."""

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
    """The model did not answer; `usage` is what the request cost anyway."""

    turn: int
    step: int
    code: str
    reason: str
    usage: Usage = Usage()


class RunStarted(Event, tag="run-started"):
    """A guest started to run code. The seed and the start time make a replay deterministic."""

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
    """The blob with the guest's state before the run; None for a new guest."""
    facts: tuple[str, ...] = ()
    """For the first run in a process: the engine's version, its capabilities and the confinement in force."""
    author: Level | None = None
    """The lowest level of anything that the author of the code had been shown; None if the policy does not ask."""
    timeout_seconds: float | None = None
    """How long the host lets it run; None for the configured limits."""


class RunParked(Event, tag="run-parked"):
    """A guest stopped in the middle of its code because a call waits for a person."""

    turn: int
    run: int
    call: CallId
    escalation: EscalationId
    snapshot: str | None
    """The blob to resume from; None means that the guest resumes by replay."""
    printed: str = ""


RunStatus = Literal["ok", "error", "limit", "lost"]


class RunEnded(Event, tag="run-ended"):
    """A guest's run has ended; `state` names the blob with its state afterwards, `error` is what the model sees."""

    turn: int
    run: int
    status: RunStatus
    value: Json = None
    printed: str = ""
    dropped: tuple[str, ...] = ()
    """What the run changed and the host did not keep, a sentence for each. It is printed too."""
    error: str = ""
    state: str | None = None
    engine: str = ""
    """The engine that ran the code, if it was chosen for this code."""
    engine_reason: str = ""
    """Why this engine was chosen."""
    whole: BlobRef | None = None
    """The blob with the whole value, if `value` is a note of its size."""
    shown: Level | None = None
    """The lowest level of what the run shows to the model; None if the policy does not ask."""
    hidden: Level | None = None
    """The lowest level of its output, if the model gets a name for it instead of the words."""
    variables: dict[str, tuple[Origin, ...]] | None = None
    """What the variables are made of after the run; None if nothing is known."""


class ToolReturned(Event, tag="tool-returned"):
    """The exact result of a tool call that the model receives."""

    turn: int
    tool_call: str
    tool: str
    content: str
    is_error: bool = False
    hidden: Level | None = None
    """The level of the words that the model got a name for instead."""


class InstructionsRead(Event, tag="instructions-read"):
    """The model got the instructions that a folder of the workspace brings, because it works there."""

    turn: int
    file: str
    """Its path in the workspace."""
    content: str
    """The instructions, as the model receives them."""
    digest: str
    """Of the file."""


class OutputRevealed(Event, tag="output-revealed"):
    """A person let the model read an output that it knew by name only."""

    turn: int
    output: str
    """Its name, such as `out_1_1`."""
    content: str
    """The words, as the model receives them."""
    level: Level
    principal: Principal
    transport: str = ""


class TurnEnded(Event, tag="turn-ended"):
    """A turn has ended. `wall_seconds` is its working time, without the time spent waiting for a person."""

    turn: int
    outcome: Outcome
    wall_seconds: float = 0.0


class TurnParked(Event, tag="turn-parked"):
    """A turn waits for a person, or the session was released; `wall_seconds` is the working time since it last started."""

    turn: int
    wall_seconds: float


class TurnReopened(Event, tag="turn-reopened"):
    """A turn that a budget had stopped continues, because the budget was raised."""

    turn: int


class HistoryCompacted(Event, tag="history-compacted"):
    """The model receives turns up to and including `through` as this summary; the originals stay in the journal."""

    through: int
    summary: str
    usage: Usage = Usage()
