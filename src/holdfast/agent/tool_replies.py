"""What the model is told of what it asked for, word for word and bounded. It is recorded as it was told.

A refusal in words: what stood against it, the one rule, and what may be done instead.

How a turn ends or comes to wait, in the words of an outcome.
"""

import traceback
from collections.abc import Sequence

import msgspec

from holdfast.core import (
    Answer,
    Error,
    Escalation,
    Failed,
    Json,
    Needs,
    Nonconverged,
    Ok,
    Outcome,
    Proposed,
    Refused,
    Returned,
    ToolCallPart,
    encode,
)
from holdfast.core.errors import BudgetExceeded, ContextExceeded, HoldfastError
from holdfast.core.events import Noted, RunEnded, ToolReturned

MAX_RETURN_CHARACTERS = 20_000


def run_text(ended: RunEnded) -> tuple[str, bool]:
    """Of a run: what it printed, the value of its last line, or the error; and whether that is an error."""
    parts = [ended.printed.rstrip()] if ended.printed.strip() else []
    if ended.status != "ok":
        parts.append(ended.error.strip())
    elif ended.value is not None:
        parts.append(f"=> {_as_text(ended.value)}")
    return _truncate("\n".join(parts) or "(no output)"), ended.status != "ok"


def run_returned(turn: int, part: ToolCallPart, ended: RunEnded) -> ToolReturned:
    """What came of the code that the model wrote."""
    content, is_error = run_text(ended)
    return tool_return(turn, part, content, is_error=is_error)


def call_returned(turn: int, part: ToolCallPart, answer: Returned | Refused | Failed) -> ToolReturned:
    """What came of a single call."""
    is_error = not isinstance(answer, Returned)
    content = _as_text(answer.value) if isinstance(answer, Returned) else answer.reason
    return tool_return(turn, part, _truncate(content), is_error=is_error)


def call_skipped(turn: int, part: ToolCallPart, number: int, *, most: int) -> ToolReturned:
    """That a call was not made, since its reply had too many."""
    # With its number: many times the same words would look like an agent that goes round in circles.
    content = f"Not carried out: this is call {number}, and only the first {most} of a reply are. Ask again."
    return tool_return(turn, part, content, is_error=True)


def tool_return(turn: int, part: ToolCallPart, content: str, *, is_error: bool) -> ToolReturned:
    """The answer to one tool call of the model."""
    return ToolReturned(turn=turn, tool_call=part.id, tool=part.tool, content=content, is_error=is_error)


def _as_text(value: Json) -> str:
    return value if isinstance(value, str) else encode(value).decode()


def _truncate(text: str) -> str:
    if len(text) <= MAX_RETURN_CHARACTERS:
        return text
    head, tail = text[: MAX_RETURN_CHARACTERS * 4 // 5], text[-MAX_RETURN_CHARACTERS // 5 :]
    return f"{head}\n[... {len(text) - len(head) - len(tail):,} characters left out ...]\n{tail}"


_DEFAULT_ADVICE = "Do not try it another way: do without it, or tell the person what you need."


def explain_refusal(answer: Answer) -> Answer:
    """The answer as code and model are told it: a refusal names its rule and a way on, all else stays as it is."""
    if not isinstance(answer, Refused):
        return answer
    return msgspec.structs.replace(
        answer, reason=f"{answer.reason} (rule {answer.rule}). {_advice(answer.rule)}"
    )


def raise_if_over_budget(answer: Answer) -> Answer:
    """The answer, unless the budget ran out: that ends the turn, which can go on once there is more."""
    if isinstance(answer, Refused) and answer.ran_out is not None:
        raise BudgetExceeded(answer.reason, dimension=answer.ran_out)
    return answer


def _advice(rule: str) -> str:
    return "Correct the arguments." if rule == "invalid-arguments" else _DEFAULT_ADVICE


_MAX_TRACE_CHARACTERS = 8_000


def success_outcome(value: Json, proposals: tuple[str, ...]) -> Outcome:
    """It is over; changes that wait for the person's commit are named."""
    return Proposed(value=value, proposals=proposals) if proposals else Ok(value=value)


def needs_approval(waiting: Sequence[Escalation]) -> Needs:
    """It waits for a person: for an answer where all that waits are questions, else for approval."""
    context: list[Json] = [str(each.id) for each in waiting]
    if all(each.decision.rule == "ask-person" for each in waiting):
        questions = "\n".join(str(each.call.arguments.get("question", "")) for each in waiting)
        return Needs(need="clarification", description=questions, context=context)
    what = ", ".join(f"{each.call.operation} ({each.decision.reason})" for each in waiting)
    return Needs(need="approval", description=f"waits for a person: {what}", context=context)


def outcome_of_error(error: Exception, last_text: str | None) -> Outcome:
    """It was stopped by an error, a limit or a fault of ours; the session is ready again."""
    match error:
        case BudgetExceeded():
            return Nonconverged(value=last_text, reason="budget", dimension=error.dimension)
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


def traceback_note(error: Exception) -> Noted:
    """A fault of ours, kept for the report."""
    trace = "".join(traceback.format_exception(error))
    return Noted(code="internal", text=trace[-_MAX_TRACE_CHARACTERS:])
