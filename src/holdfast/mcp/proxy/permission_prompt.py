"""Permissions for another agent's built-in tools: its question in, our verdict out, nothing performed here.

Claude Code asks with `--permission-prompt-tool mcp__holdfast__permission_prompt`, or by a hook. Its tools then have
operations of the group `claude`, with roles like any other tool's, so that the same policy judges them.
"""

from typing import Any

import mcp_types
import msgspec

from holdfast.core import Answer, JsonObject, Refused, Returned

PERMISSION_TOOL = mcp_types.Tool(
    name="permission_prompt",
    description="Asks the gate whether a built-in tool of the calling agent may run.",
    input_schema={
        "type": "object",
        "properties": {
            "tool_name": {"type": "string"},
            "input": {"type": "object"},
            "tool_use_id": {"type": "string"},
        },
        "required": ["tool_name", "input"],
    },
)


def operation_for(asked: dict[str, Any]) -> str:
    """The operation that stands for the tool that is asked about."""
    return f"claude.{asked.get('tool_name', '')}"


def permission_answer(answer: Answer, given: JsonObject) -> str:
    """The answer in the words of the permission-prompt contract; the input goes back as it was judged."""
    if isinstance(answer, Returned):
        return msgspec.json.encode({"behavior": "allow", "updatedInput": given}).decode()
    reason = (
        f"{answer.reason} (rule {answer.rule})" if isinstance(answer, Refused) else "it could not be judged"
    )
    return msgspec.json.encode({"behavior": "deny", "message": reason}).decode()
