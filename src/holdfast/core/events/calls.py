"""Events of a call: refused, or intended and then settled."""

from holdfast.core.calls import BlobRef, Call, CallStatus
from holdfast.core.decisions import Decision
from holdfast.core.events.base import Event
from holdfast.core.ids import CallId, EscalationId, GrantId
from holdfast.core.limits import NOTHING, Amount
from holdfast.core.tools import Change
from holdfast.core.values import Json


class CallRefused(Event, tag="call-refused"):
    """A call was not made: it was malformed, denied, over budget or refused by a person."""

    call: Call
    decision: Decision


class CallIntended(Event, tag="call-intended"):
    """A call is about to be made. This event is durable before the call has any effect."""

    call: Call
    decision: Decision
    digest: str
    tool_digest: str
    asked: str = ""
    """The digest of what the guest asked for, if a person edited the arguments."""
    is_idempotent: bool = False
    escalation: EscalationId | None = None
    grant: GrantId | None = None
    reserved: Amount = NOTHING


class CallSettled(Event, tag="call-settled"):
    """A call has ended. `result` is what the guest received, or a preview of it; `error` is why the call failed."""

    call: CallId
    status: CallStatus
    result: Json = None
    error: str = ""
    amount: Amount = NOTHING
    changes: tuple[Change, ...] = ()
    duration_ms: float = 0.0
    whole: BlobRef | None = None
    """The blob with the whole result, if `result` is a preview."""
