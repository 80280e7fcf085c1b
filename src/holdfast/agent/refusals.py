"""A refusal in words: what stood against it, the one rule, and what may be done instead."""

import msgspec

from holdfast.core import Answer, Refused
from holdfast.core.errors import BudgetExceeded

_DEFAULT_WAY = "Do not try it another way: do without it, or tell the person what you need."


def explained(answer: Answer) -> Answer:
    """The answer as code and model are told it: a refusal names its rule and a way on, all else stays as it is."""
    if not isinstance(answer, Refused):
        return answer
    return msgspec.structs.replace(
        answer, reason=f"{answer.reason} (rule {answer.rule}). {_way_on(answer.rule)}"
    )


def within_budget(answer: Answer) -> Answer:
    """The answer, unless the budget ran out: that ends the turn, which can go on once there is more."""
    if isinstance(answer, Refused) and answer.ran_out is not None:
        raise BudgetExceeded(answer.reason, dimension=answer.ran_out)
    return answer


def _way_on(rule: str) -> str:
    return "Correct the arguments." if rule == "invalid-arguments" else _DEFAULT_WAY
