"""Events: everything that happens in a session, in the past tense. The journal of them is the only truth.

An event is written once and never changed. Fields may be added with a default; none is renamed or removed. Each
recorded event carries the hash of the one before, so a changed, removed or reordered one shows.
"""

import hashlib
from typing import Literal

import msgspec

from holdfast.core.calls import Call, CallStatus
from holdfast.core.decisions import Decision, Escalation, Grant, Response
from holdfast.core.ids import CallId, EscalationId, GrantId, Principal, SessionId
from holdfast.core.limits import Amount, Limits
from holdfast.core.messages import Finish, ModelMessage
from holdfast.core.outcomes import Outcome
from holdfast.core.tools import Change
from holdfast.core.usage import Usage
from holdfast.core.values import Json, Value, encode, kebab

FORMAT = 1


class Event(Value, tag_field="event", tag=kebab):
    """Base of all events."""


# -- a session


class Parent(Value):
    """Where a fork came from: the parent's events up to and with `seq` are its own."""

    session: SessionId
    seq: int


class SessionOpened(Event):
    """The first event of every journal."""

    format: int = FORMAT
    principal: Principal
    folder: str
    """The folder it was started in; `--continue` looks for the last session of a folder."""
    workspace: str
    policy: str
    policy_digest: str
    model: str
    limits: Limits = Limits()
    name: str | None = None
    description: str = ""
    parent: Parent | None = None


class SessionRenamed(Event):
    """A session got another name, or none."""

    name: str | None


class SessionPinned(Event):
    """A session is, or no longer is, exempt from pruning."""

    is_pinned: bool


class SessionReconfigured(Event):
    """Policy, model or workspace changed from here on; an empty field stayed as it was."""

    policy: str = ""
    policy_digest: str = ""
    model: str = ""
    workspace: str = ""


class SessionPaused(Event):
    """No turn is taken until it is resumed."""


class SessionResumed(Event):
    """Turns are taken again."""


class SessionClosed(Event):
    """No more turns. Nothing is deleted."""

    how: Literal["completed", "aborted", "failed"] = "completed"
    reason: str = ""


# -- a turn


class MessagePosted(Event):
    """A message began a turn."""

    turn: int
    text: str
    principal: Principal
    transport: str = ""
    message: str = ""
    """The sender's own id of it, where it has one: the same message twice is one turn."""


class CodePosted(Event):
    """Code from the host began a turn; no model is asked."""

    turn: int
    code: str
    language: str
    principal: Principal


class ModelAsked(Event):
    """The model is about to be asked; without a reply after it, the request may have been paid for nothing."""

    turn: int
    step: int
    model: str
    reserved: Amount = Amount()


class ModelReplied(Event):
    """The model answered."""

    turn: int
    step: int
    model: str
    message: ModelMessage
    usage: Usage
    finish: Finish = "stop"


class ModelFailed(Event):
    """The model did not answer; `usage` is what was paid all the same."""

    turn: int
    step: int
    code: str
    reason: str
    usage: Usage = Usage()


class RunStarted(Event):
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


class RunParked(Event):
    """A guest stopped in the middle of a line because its call waits for a person."""

    turn: int
    run: int
    call: CallId
    escalation: EscalationId
    snapshot: str | None
    """The blob to go on from; None means that it goes on by replay."""
    printed: str = ""


RunStatus = Literal["ok", "error", "limit", "lost"]


class RunEnded(Event):
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


class ToolReturned(Event):
    """What the model is told of one of its tool calls, word for word."""

    turn: int
    tool_call: str
    tool: str
    content: str
    is_error: bool = False


class TurnEnded(Event):
    """The agent rests. `wall_seconds` is what the turn took while it was worked on, without waiting for a person."""

    turn: int
    outcome: Outcome
    wall_seconds: float = 0.0


class TurnParked(Event):
    """A turn waits for a person, or the session was let go; `wall_seconds` is what it was worked on since it last began to be."""

    turn: int
    wall_seconds: float


class TurnReopened(Event):
    """A turn that a budget stopped goes on where it was, because the budget was raised."""

    turn: int


class HistoryCompacted(Event):
    """Turns up to and with `through` are given to the model as this summary; the originals stay in the journal."""

    through: int
    summary: str
    usage: Usage = Usage()


# -- a call


class CallRefused(Event):
    """A call was not made: malformed, denied, over budget, or a person said no."""

    call: Call
    decision: Decision


class CallIntended(Event):
    """A call is about to be made. On disk before anything happens."""

    call: Call
    decision: Decision
    digest: str
    tool_digest: str
    asked: str = ""
    """The digest of what the guest asked for, where a person edited the arguments."""
    is_idempotent: bool = False
    escalation: EscalationId | None = None
    grant: GrantId | None = None
    reserved: Amount = Amount()


class CallSettled(Event):
    """A call is over. `result` is what the guest was given, bounded; `error` is why it failed."""

    call: CallId
    status: CallStatus
    result: Json = None
    error: str = ""
    amount: Amount = Amount()
    changes: tuple[Change, ...] = ()
    duration_ms: float = 0.0


# -- a person


class EscalationOpened(Event):
    """A call waits for a person."""

    escalation: Escalation


class EscalationAnswered(Event):
    """A person answered; the first valid answer is the one recorded."""

    escalation: EscalationId
    response: Response
    principal: Principal
    transport: str


class EscalationExpired(Event):
    """Nobody answered in time, or nobody could: that is a no."""

    escalation: EscalationId
    reason: str


class GrantGiven(Event):
    """A standing yes from here on."""

    grant: Grant


class GrantRevoked(Event):
    """A standing yes was taken back."""

    grant: GrantId


class BudgetRaised(Event):
    """The session's limits are these from here on."""

    limits: Limits
    principal: Principal
    added: Limits = Limits()
    """What was put on top: the turn at hand gets it too, and so does the tree that the session belongs to."""
    request: str = ""
    """The id of the request that asked for it from another process, so that it is heeded once."""


class BudgetWarned(Event):
    """Four fifths of a limit are spent."""

    dimension: str
    spent: str
    limit: str


# -- files


class ProposalsCommitted(Event):
    """Staged changes were made for good, all of these or none."""

    changes: tuple[Change, ...]
    principal: Principal


class ProposalsRejected(Event):
    """Staged changes were dropped."""

    paths: tuple[str, ...]
    principal: Principal


class RestorePointMade(Event):
    """The workspace as it was after a turn can be brought back from this blob."""

    turn: int
    manifest: str
    changes: tuple[Change, ...] = ()
    """The files that were created, modified and deleted since the point before, by whomever."""
    more: int = 0
    """How many of them are not listed."""


class SessionRewound(Event):
    """Everything after `seq` is history that no longer counts: chat, files, staged changes, budget, grants."""

    seq: int
    turn: int
    principal: Principal


# -- a team


class MemberBound(Event):
    """A session of a team lives in this conversation of another agent; a higher generation began without memory."""

    kind: str
    conversation: str
    generation: int = 1
    folder: str = ""
    version: str = ""
    reason: str = ""


class NoticeLeft(Event):
    """A colleague left word for the next turn; after its time it is not delivered."""

    notice: str
    text: str
    principal: Principal
    expires_ms: int


class NoticesDelivered(Event):
    """Word that a colleague had left was handed over with a message."""

    notices: tuple[str, ...]
    message: str


class LetterLeft(Event):
    """A colleague sent a message and does not wait for its answer; it is delivered also after a restart."""

    message: str
    text: str
    principal: Principal
    hops: int = 0


class LetterSettled(Event):
    """What became of a message that nobody waits for; its answer, where it got one, is in the session of the pair."""

    message: str
    outcome: Outcome


# -- news


class Noted(Event):
    """Something worth telling the person that changes nothing."""

    code: str
    text: str


AnyEvent = (
    SessionOpened
    | SessionRenamed
    | SessionPinned
    | SessionReconfigured
    | SessionPaused
    | SessionResumed
    | SessionClosed
    | MessagePosted
    | CodePosted
    | ModelAsked
    | ModelReplied
    | ModelFailed
    | RunStarted
    | RunParked
    | RunEnded
    | ToolReturned
    | TurnEnded
    | TurnParked
    | TurnReopened
    | HistoryCompacted
    | CallRefused
    | CallIntended
    | CallSettled
    | EscalationOpened
    | EscalationAnswered
    | EscalationExpired
    | GrantGiven
    | GrantRevoked
    | BudgetRaised
    | BudgetWarned
    | ProposalsCommitted
    | ProposalsRejected
    | RestorePointMade
    | SessionRewound
    | MemberBound
    | NoticeLeft
    | NoticesDelivered
    | LetterLeft
    | LetterSettled
    | Noted
)

_DECODER: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
GENESIS = b"\0" * 32


class Recorded(Value):
    """An event in its place: `seq` counts from 1, `hash` covers this event and, through `previous`, all before it."""

    session: SessionId
    seq: int
    at_ms: int
    event: AnyEvent
    hash: bytes
    previous: bytes = GENESIS


def encode_event(event: AnyEvent) -> bytes:
    """The bytes of an event as they are stored and hashed."""
    return encode(event)


def decode_event(body: bytes) -> AnyEvent:
    """The event in these bytes; raises msgspec.ValidationError on anything else."""
    return _DECODER.decode(body)


def chain(previous: bytes, session: str, seq: int, at_ms: int, body: bytes) -> bytes:
    """The hash of an event: over the hash before it, its place, its time and its bytes."""
    head = f"{session}\n{seq}\n{at_ms}\n".encode()
    return hashlib.sha256(previous + head + body).digest()
