"""What becomes of a call: refused, or intended and settled."""

from holdfast.core.calls import Call, CallStatus
from holdfast.core.decisions import Decision
from holdfast.core.events.base import Event
from holdfast.core.ids import CallId, EscalationId, GrantId
from holdfast.core.limits import NOTHING, Amount
from holdfast.core.tools import Change
from holdfast.core.values import Json


class CallRefused(Event, tag="call-refused"):
    """A call was not made: malformed, denied, over budget, or a person said no."""

    call: Call
    decision: Decision


class CallIntended(Event, tag="call-intended"):
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
    reserved: Amount = NOTHING


class CallSettled(Event, tag="call-settled"):
    """A call is over. `result` is what the guest was given, bounded; `error` is why it failed."""

    call: CallId
    status: CallStatus
    result: Json = None
    error: str = ""
    amount: Amount = NOTHING
    changes: tuple[Change, ...] = ()
    duration_ms: float = 0.0
