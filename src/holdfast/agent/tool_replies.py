"""What the model and the caller get back: tool returns, refusals in words, and the outcomes that end a turn.

Tool returns are bounded in size and recorded exactly as the model receives them.
"""

import traceback
from collections.abc import Sequence

import msgspec

from holdfast.agent.hidden_output import describe_hidden, describe_hidden_call
from holdfast.agent.prompt import operation_name
from holdfast.core import (
    Answer,
    CallId,
    Error,
    Escalation,
    Failed,
    Json,
    Level,
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
_DEFAULT_ADVICE = "Do not try it another way: continue without it, or tell the person what you need."
NO_REASON = "the person denied it"
_MAX_TRACE_CHARACTERS = 8_000


def run_text(ended: RunEnded) -> tuple[str, bool]:
    """The text of a run (its output, then its value or error) and whether it failed."""
    parts = [ended.printed.rstrip()] if ended.printed.strip() else []
    if ended.status != "ok":
        parts.append(ended.error.strip())
    elif ended.value is not None:
        parts.append(f"=> {_as_text(ended.value)}")
    rest = "print less, or only a part; a person sees everything with `holdfast show --full`"
    return _truncate("\n".join(parts) or "(no output)", rest), ended.status != "ok"


def shortened(text: str) -> str:
    """A text as far as the model receives it."""
    return _truncate(text, "a person sees everything with `holdfast show --full`")


def run_returned(turn: int, part: ToolCallPart, ended: RunEnded) -> ToolReturned:
    """The tool return for code that the model wrote."""
    content, is_error = run_text(ended)
    if ended.hidden is not None:
        content = describe_hidden(ended)
    return tool_return(turn, part, content, is_error=is_error)


def hidden_call_returned(
    turn: int, part: ToolCallPart, call: CallId, answer: Returned | Failed | Refused, level: Level
) -> ToolReturned:
    """The tool return for a single call whose words the model is not shown."""
    content = describe_hidden_call(call, answer, level)
    returned = tool_return(turn, part, content, is_error=not isinstance(answer, Returned))
    return msgspec.structs.replace(returned, hidden=level)


def call_returned(turn: int, part: ToolCallPart, answer: Returned | Refused | Failed) -> ToolReturned:
    """The tool return for a single call."""
    is_error = not isinstance(answer, Returned)
    content = _as_text(answer.value) if isinstance(answer, Returned) else answer.reason
    return tool_return(
        turn, part, _truncate(content, _rest_of_call(part, content, answer)), is_error=is_error
    )


def call_skipped(turn: int, part: ToolCallPart, number: int, *, max_calls: int) -> ToolReturned:
    """The tool return for a call beyond the maximum of one reply."""
    # Include the number: identical texts would look like a loop.
    content = f"Not executed: this is call {number}, and only the first {max_calls} of a reply are executed. Ask again."
    return tool_return(turn, part, content, is_error=True)


def tool_return(turn: int, part: ToolCallPart, content: str, *, is_error: bool) -> ToolReturned:
    """The answer to one tool call of the model."""
    return ToolReturned(turn=turn, tool_call=part.id, tool=part.tool, content=content, is_error=is_error)


def _as_text(value: Json) -> str:
    return value if isinstance(value, str) else encode(value).decode()


_HEAD_CHARACTERS = MAX_RETURN_CHARACTERS * 4 // 5
_TAIL_CHARACTERS = MAX_RETURN_CHARACTERS // 5


def _truncate(text: str, rest: str) -> str:
    """The text, or its start and end; `rest` says how to get what is omitted."""
    if len(text) <= MAX_RETURN_CHARACTERS:
        return text
    omitted = len(text) - _HEAD_CHARACTERS - _TAIL_CHARACTERS
    return f"{text[:_HEAD_CHARACTERS]}\n[... {omitted:,} characters omitted; {rest} ...]\n{text[-_TAIL_CHARACTERS:]}"


def _rest_of_call(part: ToolCallPart, content: str, answer: Returned | Refused | Failed) -> str:
    """How to get what is omitted of a call's answer."""
    whole = f"blob {answer.blob}" if isinstance(answer, Returned) and answer.blob else "the whole answer"
    is_text = isinstance(answer, Returned) and part.arguments.get("encoding", "utf-8") == "utf-8"
    if not is_text or operation_name(part.tool) != "world.read":
        return f"a person sees {whole} with `holdfast show --full`"
    offset = part.arguments.get("offset")
    start = (offset if isinstance(offset, int) else 0) + len(content[:_HEAD_CHARACTERS].encode())
    length = len(content[_HEAD_CHARACTERS:-_TAIL_CHARACTERS].encode())
    return f"world.read with offset={start} and length={length} returns them"


def explain_refusal(answer: Answer) -> Answer:
    """The answer as code and model receive it: a refusal names its rule and what to do next, anything else is unchanged."""
    if not isinstance(answer, Refused):
        return answer
    if answer.is_by_person:
        # A person's words are final as they are: they may well ask for another way.
        return (
            answer
            if answer.reason != NO_REASON
            else msgspec.structs.replace(
                answer, reason=f"{answer.reason}. Continue without it, or ask what they want instead."
            )
        )
    return msgspec.structs.replace(
        answer, reason=f"{answer.reason} (rule {answer.rule}). {_advice(answer.rule)}"
    )


def raise_if_over_budget(answer: Answer) -> Answer:
    """Return the answer, or raise BudgetExceeded: that ends the turn, which can resume once there is more budget."""
    if isinstance(answer, Refused) and answer.exhausted is not None:
        raise BudgetExceeded(answer.reason, dimension=answer.exhausted)
    return answer


def _advice(rule: str) -> str:
    return "Correct the arguments." if rule == "invalid-arguments" else _DEFAULT_ADVICE


def success_outcome(value: Json, proposals: tuple[str, ...]) -> Outcome:
    """The turn ended normally; staged changes make the outcome `Proposed`."""
    return Proposed(value=value, proposals=proposals) if proposals else Ok(value=value)


def needs_approval(waiting: Sequence[Escalation]) -> Needs:
    """The turn waits for a person: for clarification if all that waits are questions, else for approval."""
    context: list[Json] = [str(each.id) for each in waiting]
    if all(each.decision.rule == "ask-person" for each in waiting):
        questions = "\n".join(str(each.call.arguments.get("question", "")) for each in waiting)
        return Needs(need="clarification", description=questions, context=context)
    what = ", ".join(f"{each.call.operation} ({each.decision.reason})" for each in waiting)
    return Needs(need="approval", description=f"needs approval: {what}", context=context)


_CONTEXT_EXCEEDED = "Context window exceeded"
"""The words of the outcome. The models of ours use them too; a model of a host may not."""


def outcome_of_error(error: Exception, last_text: str | None) -> Outcome:
    """The turn ended because of an error, a limit or a bug of ours; the session is ready again."""
    match error:
        case BudgetExceeded():
            return Nonconverged(value=last_text, reason="budget", dimension=error.dimension)
        case ContextExceeded():
            return Error(
                message=str(error)
                if str(error).startswith(_CONTEXT_EXCEEDED)
                else f"{_CONTEXT_EXCEEDED}: {error}",
                code=error.code,
                hint="summarize older turns with /compact, fork an earlier turn with /fork, or start a new session",
            )
        case HoldfastError():
            return Error(message=str(error), code=error.code, hint=error.hint)
        case _:
            return Error(message=f"internal error: {error!r}", code="internal", hint="please report it")


def traceback_note(error: Exception) -> Noted:
    """The traceback of an internal error, recorded for a bug report."""
    trace = "".join(traceback.format_exception(error))
    return Noted(code="internal", text=trace[-_MAX_TRACE_CHARACTERS:])
