"""What a person was asked, said, gave and raised."""

from holdfast.core.decisions import Escalation, Grant, Response
from holdfast.core.events.base import Event
from holdfast.core.ids import EscalationId, GrantId, Principal
from holdfast.core.limits import Limits


class EscalationOpened(Event, tag="escalation-opened"):
    """A call waits for a person."""

    escalation: Escalation


class EscalationAnswered(Event, tag="escalation-answered"):
    """A person answered; the first valid answer is the one recorded."""

    escalation: EscalationId
    response: Response
    principal: Principal
    transport: str


class EscalationExpired(Event, tag="escalation-expired"):
    """Nobody answered in time, or nobody could: that is a no."""

    escalation: EscalationId
    reason: str


class GrantGiven(Event, tag="grant-given"):
    """A standing yes from here on."""

    grant: Grant


class GrantRevoked(Event, tag="grant-revoked"):
    """A standing yes was taken back."""

    grant: GrantId


class BudgetRaised(Event, tag="budget-raised"):
    """The session's limits are these from here on."""

    limits: Limits
    principal: Principal
    added: Limits = Limits()
    """What was put on top: the turn at hand gets it too, and so does the tree that the session belongs to."""
    request: str = ""
    """The id of the request that asked for it from another process, so that it is heeded once."""


class BudgetWarned(Event, tag="budget-warned"):
    """Four fifths of a limit are spent."""

    dimension: str
    spent: str
    limit: str
