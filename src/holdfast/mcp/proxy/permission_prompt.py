"""The permission prompt tool: another agent asks whether it may run one of its built-in tools, and gets the verdict.

Claude Code calls it with `--permission-prompt-tool mcp__holdfast__permission_prompt`. Each built-in tool is an operation
in the group `claude`, with argument roles, so the same policy judges it. Nothing runs here.
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
    """The operation for the tool that the agent asks about."""
    return f"claude.{asked.get('tool_name', '')}"


def permission_response(answer: Answer, given: JsonObject) -> str:
    """The answer in the format of the permission prompt. The input is returned as it was judged."""
    if isinstance(answer, Returned):
        return msgspec.json.encode({"behavior": "allow", "updatedInput": given}).decode()
    reason = (
        f"{answer.reason} (rule {answer.rule})"
        if isinstance(answer, Refused)
        else "the call could not be judged"
    )
    return msgspec.json.encode({"behavior": "deny", "message": reason}).decode()
