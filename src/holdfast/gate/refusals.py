"""Refusals that come from the gate itself: no policy gave them and none can lift them."""

from holdfast.core import DIMENSIONS, Decision, Dimension
from holdfast.core.errors import BudgetExceeded

_SOURCE = "gate"


def deny(rule: str, reason: str) -> Decision:
    """A refusal of the gate itself."""
    return Decision(verdict="deny", rule=rule, reason=reason, source=_SOURCE)


def over_budget(error: BudgetExceeded) -> Decision:
    """A refusal for want of budget: for now, not for good."""
    return deny(f"budget-{error.dimension}", str(error))


def exhausted_dimension(decision: Decision) -> Dimension | None:
    """What the budget had too little of, where that is why a call was refused."""
    if decision.source != _SOURCE:
        return None  # a policy may have a rule of such a name
    return next((each for each in DIMENSIONS if decision.rule == f"budget-{each}"), None)
