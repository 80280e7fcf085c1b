"""The result of a turn, with what a host needs to decide what comes next."""

from decimal import Decimal

from holdfast.core import Amount, Outcome, Value
from holdfast.world import Proposal


class TurnResult(Value):
    """How the last turn went: its outcome, what is left of the budget, and what waits to be committed."""

    outcome: Outcome | None
    """None while the turn runs or waits."""
    turn_number: int
    budget_remaining: dict[str, Decimal | None]
    """What is left in each dimension, by its word as in `--budget`. None means no limit."""
    proposals: tuple[Proposal, ...]
    prompt_tokens: int
    completion_tokens: int
    spent: Amount
