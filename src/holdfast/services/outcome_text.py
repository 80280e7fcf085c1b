"""The outcome of a turn in words, for people. Programs read the outcome names in JSON."""

from typing import assert_never

from holdfast.core import (
    Cycle,
    Error,
    Json,
    Needs,
    Nonconverged,
    Ok,
    Outcome,
    Proposed,
    budget_word,
    encode,
    escape_invisible,
    pluralize,
)


def describe_outcome(outcome: Outcome) -> str:
    """Everything but the answer: what was staged, what waits, or what went wrong."""
    match outcome:
        case Ok():
            return "done"
        case Proposed():
            return f"staged, not committed: {', '.join(map(escape_invisible, outcome.proposals))}"
        case Needs():
            return escape_invisible(outcome.description)
        case Nonconverged(reason="budget"):
            return f"stopped: the {budget_word(outcome.dimension)} limit was reached"
        case Nonconverged(reason="cancelled"):
            return "stopped by you or by the program that runs it"
        case Nonconverged():
            return f"stopped without a result after {pluralize(outcome.iterations, 'round')}"
        case Cycle():
            return f"stopped: the same step gave the same result {outcome.length} times"
        case Error():
            return f"error: {escape_invisible(outcome.message)} ({outcome.code})"
        case _:
            assert_never(outcome)


def answer_text(value: Json) -> str:
    """The answer of an agent as text."""
    if value is None:
        return ""
    return value if isinstance(value, str) else encode(value).decode()
