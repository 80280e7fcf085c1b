"""What the model is told of what it asked for, word for word and bounded. It is recorded as it was told."""

from holdfast.core import Failed, Json, Refused, Returned, ToolCallPart, encode
from holdfast.core.events import RunEnded, ToolReturned

MAX_RETURN_CHARACTERS = 20_000


def told(ended: RunEnded) -> tuple[str, bool]:
    """Of a run: what it printed, the value of its last line, or the error; and whether that is an error."""
    parts = [ended.printed.rstrip()] if ended.printed.strip() else []
    if ended.status != "ok":
        parts.append(ended.error.strip())
    elif ended.value is not None:
        parts.append(f"=> {_shown(ended.value)}")
    return _cut("\n".join(parts) or "(no output)"), ended.status != "ok"


def run_returned(turn: int, part: ToolCallPart, ended: RunEnded) -> ToolReturned:
    """What came of the code that the model wrote."""
    content, is_error = told(ended)
    return returned(turn, part, content, is_error=is_error)


def call_returned(turn: int, part: ToolCallPart, answer: Returned | Refused | Failed) -> ToolReturned:
    """What came of a single call."""
    is_error = not isinstance(answer, Returned)
    content = _shown(answer.value) if isinstance(answer, Returned) else answer.reason
    return returned(turn, part, _cut(content), is_error=is_error)


def call_left_out(turn: int, part: ToolCallPart, number: int, *, most: int) -> ToolReturned:
    """That a call was not made, since its reply had too many."""
    # With its number: many times the same words would look like an agent that goes round in circles.
    content = f"Not carried out: this is call {number}, and only the first {most} of a reply are. Ask again."
    return returned(turn, part, content, is_error=True)


def returned(turn: int, part: ToolCallPart, content: str, *, is_error: bool) -> ToolReturned:
    """The answer to one tool call of the model."""
    return ToolReturned(turn=turn, tool_call=part.id, tool=part.tool, content=content, is_error=is_error)


def _shown(value: Json) -> str:
    return value if isinstance(value, str) else encode(value).decode()


def _cut(text: str) -> str:
    if len(text) <= MAX_RETURN_CHARACTERS:
        return text
    head, tail = text[: MAX_RETURN_CHARACTERS * 4 // 5], text[-MAX_RETURN_CHARACTERS // 5 :]
    return f"{head}\n[... {len(text) - len(head) - len(tail):,} characters left out ...]\n{tail}"
