"""Refusals by the gate itself: no policy decided them and none can override them."""

from holdfast.core import DIMENSIONS, Decision, Dimension, Refused
from holdfast.core.errors import BudgetExceeded

_SOURCE = "gate"


def deny(rule: str, reason: str) -> Decision:
    """A refusal by the gate."""
    return Decision(verdict="deny", rule=rule, reason=reason, source=_SOURCE)


def refused_answer(decision: Decision, *, exhausted: Dimension | None = None) -> Refused:
    """What the guest gets for a refusal."""
    return Refused(
        reason=decision.reason,
        rule=decision.rule,
        exhausted=exhausted,
        is_by_person=decision.is_by_person,
    )


def over_budget(error: BudgetExceeded) -> Decision:
    """A refusal for lack of budget: temporary, not final."""
    return deny(f"budget-{error.dimension}", str(error))


def exhausted_dimension(decision: Decision) -> Dimension | None:
    """The exhausted dimension, if lack of budget is why the call was refused."""
    if decision.source != _SOURCE:
        return None  # a policy may have a rule with the same name
    return next((each for each in DIMENSIONS if decision.rule == f"budget-{each}"), None)
