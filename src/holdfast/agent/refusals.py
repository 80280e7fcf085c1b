"""A refusal in words: what stood against it, the one rule, and what may be done instead."""

from holdfast.core import Answer, Refused

_DEFAULT_WAY = "Do not try it another way: do without it, or tell the person what you need."


def explained(answer: Answer) -> Answer:
    """The answer as code and model are told it: a refusal names its rule and a way on, all else stays as it is."""
    if not isinstance(answer, Refused):
        return answer
    return Refused(reason=f"{answer.reason} (rule {answer.rule}). {_way_on(answer.rule)}", rule=answer.rule)


def _way_on(rule: str) -> str:
    if rule == "invalid-arguments":
        return "Correct the arguments."
    if rule.startswith("budget-"):
        return "End the turn and say how far you came."
    return _DEFAULT_WAY
