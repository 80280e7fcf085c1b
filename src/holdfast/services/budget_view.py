"""The limits of a session and what it has spent."""

from decimal import Decimal

from holdfast.core import Amount, Dimension, Limits, SessionId, Value
from holdfast.core.projection import ReplayedHistory
from holdfast.gate import Budget, ControlRequests, left_in_tree
from holdfast.store import Home, Store


class BudgetView(Value, omit_defaults=False):
    """The limits of a session and what it has spent."""

    session: SessionId
    limits: Limits
    spent: Amount
    paid: Amount
    """What it has spent, with the turns that were rewound."""
    left_in_tree: dict[Dimension, Decimal]
    """What is left of the limits that the session shares with its forks."""
    requests: int
    """Requests that the process which holds the session has not applied yet."""


async def view_budget(home: Home, store: Store, session: SessionId) -> BudgetView:
    """Read the budget of a session from its journal."""
    recorded = await store.read(session)
    budget = Budget(ReplayedHistory(recorded), turn_limits=Limits())
    return BudgetView(
        session=session,
        limits=budget.limits,
        spent=budget.spent,
        paid=budget.paid,
        left_in_tree=await left_in_tree(recorded, home=home, store=store),
        requests=ControlRequests(home.control_requests(session)).count(),
    )
