"""Events of approvals: escalations, answers, grants and budgets."""

from holdfast.core.decisions import Escalation, Grant, Response
from holdfast.core.events.base import Event
from holdfast.core.ids import EscalationId, GrantId, Principal
from holdfast.core.limits import Limits


class EscalationOpened(Event, tag="escalation-opened"):
    """A call waits for a person."""

    escalation: Escalation


class EscalationAnswered(Event, tag="escalation-answered"):
    """A person answered; the first valid answer is recorded."""

    escalation: EscalationId
    response: Response
    principal: Principal
    transport: str


class EscalationExpired(Event, tag="escalation-expired"):
    """The escalation was not answered in time, or could not be; the call is refused."""

    escalation: EscalationId
    reason: str


class GrantGiven(Event, tag="grant-given"):
    """A grant is valid from here on."""

    grant: Grant


class GrantRevoked(Event, tag="grant-revoked"):
    """A grant was revoked."""

    grant: GrantId


class BudgetRaised(Event, tag="budget-raised"):
    """The session's limits are these from here on."""

    limits: Limits
    principal: Principal
    added: Limits = Limits()
    """The increase. It also applies to the current turn and to the tree that the session belongs to."""
    request: str = ""
    """The id of the control request of another process that asked for it, so that it is applied once. `import`: the limits that
    an imported session has here."""


class BudgetWarned(Event, tag="budget-warned"):
    """Four fifths of a limit are spent."""

    dimension: str
    spent: str
    limit: str
