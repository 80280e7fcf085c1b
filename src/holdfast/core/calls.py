"""A call is a wish of a guest; the gate turns it into an answer."""

from typing import Literal

from holdfast.core.ids import AGENT, CallId, EscalationId, Principal
from holdfast.core.limits import NOTHING, Amount, Dimension
from holdfast.core.values import Json, JsonObject, Value, digest


class Label(Value):
    """Where a value came from, and whether a person stands behind it."""

    source: str
    is_trusted: bool = False


class Call(Value):
    """An operation (`group.verb`) with its arguments, as the guest asked for it."""

    id: CallId
    operation: str
    arguments: JsonObject
    principal: Principal = AGENT
    labels: tuple[Label, ...] = ()

    @property
    def turn(self) -> int:
        """The turn this call belongs to."""
        return int(self.id.partition(".")[0])

    @property
    def digest(self) -> str:
        """Names the exact operation and arguments: what is judged, shown and performed has one digest."""
        return digest([self.operation, self.arguments])


class Returned(Value, tag_field="kind", tag="returned"):
    """The call was carried out."""

    value: Json = None
    amount: Amount = NOTHING
    """What that spent, for guests that keep budgets of their own."""


class Refused(Value, tag_field="kind", tag="refused"):
    """Policy, person or budget said no. The guest is told why, and what rule."""

    reason: str
    rule: str
    ran_out: Dimension | None = None
    """What the budget had too little of; once it has more, the same call may be made after all."""


class Failed(Value, tag_field="kind", tag="failed"):
    """The call was made and went wrong."""

    error: str
    reason: str


class Parked(Value, tag_field="kind", tag="parked"):
    """The call waits for a person: the guest is to snapshot itself and stop."""

    escalation: EscalationId


Answer = Returned | Refused | Failed | Parked

CallStatus = Literal["ok", "error", "timeout", "cancelled", "unknown"]
"""How a performed call ended; `unknown` is one that a crash cut off between intent and outcome."""


def call_id(turn: int, number: int) -> CallId:
    """The id of the n-th call of a turn."""
    return CallId(f"{turn}.{number}")
