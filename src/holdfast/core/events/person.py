"""What a person was asked, said, gave and raised."""

from holdfast.core.decisions import Escalation, Grant, Response
from holdfast.core.events.base import Event
from holdfast.core.ids import EscalationId, GrantId, Principal
from holdfast.core.limits import Limits


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
