"""Calls: what a guest asks for, and what the gate answers."""

from typing import Literal

import msgspec

from holdfast.core.ids import AGENT, CallId, EscalationId, Principal
from holdfast.core.limits import NOTHING, Amount, Dimension
from holdfast.core.values import Json, JsonObject, Value, digest_call


class Label(Value):
    """Where a value came from, and whether a person vouches for it."""

    source: str
    is_trusted: bool = False


class BlobRef(Value):
    """The blob that holds a large value whole: a text as its UTF-8 bytes, anything else as JSON."""

    digest: str = ""
    size: int = 0
    format: Literal["text", "json"] = "text"


class LargeArguments(Value):
    """The arguments of a recorded call that are previews: the blob of each, and the digest of the whole call."""

    blobs: dict[str, BlobRef] = msgspec.field(default_factory=dict)
    digest: str = ""


class Call(Value):
    """An operation (`group.verb`) with its arguments, as the guest requested it."""

    id: CallId
    operation: str
    arguments: JsonObject
    principal: Principal = AGENT
    labels: tuple[Label, ...] = ()
    large: LargeArguments | None = None
    """Set only on a recorded call: the arguments of which the journal has a preview."""

    @property
    def turn(self) -> int:
        """The turn that this call belongs to."""
        return int(self.id.partition(".")[0])

    @property
    def digest(self) -> str:
        """Identifies the exact operation and arguments: what is judged, shown and performed has the same digest."""
        return self.large.digest if self.large is not None else digest_call(self.operation, self.arguments)


class Returned(Value, tag_field="kind", tag="returned"):
    """The call was performed."""

    value: Json = None
    amount: Amount = NOTHING
    """What the call cost, for guests that keep their own budgets."""
    blob: str = ""
    """The blob that holds the value, if the journal has only a preview of it."""


class Refused(Value, tag_field="kind", tag="refused"):
    """The policy, a person or the budget refused the call. The guest gets the reason and the rule."""

    reason: str
    rule: str
    exhausted: Dimension | None = msgspec.field(default=None, name="ran_out")
    """The dimension that the budget lacked; once the limit is raised, the same call can be made."""
    is_by_person: bool = False
    """A person denied the call, and the reason is in their words."""


class Failed(Value, tag_field="kind", tag="failed"):
    """The call was made and failed."""

    error: str
    reason: str


class Parked(Value, tag_field="kind", tag="parked"):
    """The call waits for a person: the guest must take a snapshot of itself and stop."""

    escalation: EscalationId


Answer = Returned | Refused | Failed | Parked

CallStatus = Literal["ok", "error", "timeout", "cancelled", "unknown"]
"""How a performed call ended; `unknown` if a crash interrupted it between intent and outcome."""


def call_id(turn: int, number: int) -> CallId:
    """Build the id of the n-th call of a turn."""
    return CallId(f"{turn}.{number}")
