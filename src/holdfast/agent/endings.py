"""How a turn ends or comes to wait, in the words of an outcome."""

import traceback
from collections.abc import Sequence

from holdfast.core import Error, Escalation, Json, Needs, Nonconverged, Ok, Outcome, Proposed
from holdfast.core.errors import BudgetExceeded, ContextExceeded, HoldfastError
from holdfast.core.events import Noted

_MAX_TRACE_CHARACTERS = 8_000


def done(value: Json, proposals: tuple[str, ...]) -> Outcome:
    """It is over; changes that wait for the person's commit are named."""
    return Proposed(value=value, proposals=proposals) if proposals else Ok(value=value)


def waits_for(waiting: Sequence[Escalation]) -> Needs:
    """It waits for a person: for an answer where all that waits are questions, else for approval."""
    context: list[Json] = [str(each.id) for each in waiting]
    if all(each.decision.rule == "ask-person" for each in waiting):
        questions = "\n".join(str(each.call.arguments.get("question", "")) for each in waiting)
        return Needs(need="clarification", description=questions, context=context)
    what = ", ".join(f"{each.call.operation} ({each.decision.reason})" for each in waiting)
    return Needs(need="approval", description=f"waits for a person: {what}", context=context)


def ended_by(error: Exception, last_words: str | None) -> Outcome:
    """It was stopped by an error, a limit or a fault of ours; the session is ready again."""
    match error:
        case BudgetExceeded():
            return Nonconverged(value=last_words, reason="budget", dimension=error.dimension)
        case ContextExceeded():
            return Error(
                message=f"Context window exceeded: {error}",
                code=error.code,
                hint="summarise older turns with /compact, fork an earlier turn with /fork, or start a new session",
            )
        case HoldfastError():
            return Error(message=str(error), code=error.code, hint=error.hint)
        case _:
            return Error(message=f"internal error: {error!r}", code="internal", hint="please report it")


def trace_of(error: Exception) -> Noted:
    """A fault of ours, kept for the report."""
    trace = "".join(traceback.format_exception(error))
    return Noted(code="internal", text=trace[-_MAX_TRACE_CHARACTERS:])
