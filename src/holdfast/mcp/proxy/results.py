"""Answers of the gate in the words of the protocol."""

from typing import Any, assert_never, cast

import mcp_types
import msgspec
from mcp.shared.exceptions import MCPError

from holdfast.core import Answer, Failed, Json, Parked, Refused, Returned, Tool


def as_offered(tool: Tool) -> mcp_types.Tool:
    """A tool in the words of the protocol."""
    # A dot is not allowed by every client, so `git.git_log` is `git__git_log`; no server's name holds `__`.
    return mcp_types.Tool(
        name=tool.name.replace(".", "__", 1),
        description=tool.description,
        input_schema=tool.parameters or {"type": "object"},
        output_schema=tool.returns or None,
        annotations=mcp_types.ToolAnnotations(
            read_only_hint=tool.is_read_only,
            destructive_hint=tool.is_destructive,
            idempotent_hint=tool.is_idempotent,
        ),
    )


def tool_result(answer: Answer) -> mcp_types.CallToolResult:
    """What a client is told of its call; a refusal is a result too, so that its model hears the reason."""
    match answer:
        case Returned(value=dict(value)) if "content" in value:
            # It came from a server in this very form; the library checks it once more on its way out.
            wire: Any = value
            return cast("mcp_types.CallToolResult", wire)
        case Returned():
            return text_result(
                answer.value if isinstance(answer.value, str) else msgspec.json.encode(answer.value).decode()
            )
        case Refused():
            return _error(f"DENIED: {answer.reason} (rule {answer.rule})")
        case Failed():
            return _error(answer.reason or answer.error)
        case Parked():
            return _error("DENIED: it waits for a person")
        case _:
            assert_never(answer)


def result_value(answer: Answer) -> Json:
    """What was returned. Raises MCPError for everything else, where the protocol has no result that could say it."""
    match answer:
        case Returned():
            return answer.value
        case Refused():
            raise MCPError(mcp_types.INVALID_REQUEST, f"DENIED: {answer.reason} (rule {answer.rule})")
        case Failed():
            raise MCPError(mcp_types.INTERNAL_ERROR, answer.reason or answer.error)
        case Parked():
            raise MCPError(mcp_types.INVALID_REQUEST, "DENIED: it waits for a person")
        case _:
            assert_never(answer)


def text_result(text: str) -> mcp_types.CallToolResult:
    """Plain words as a result."""
    return mcp_types.CallToolResult(content=[mcp_types.TextContent(type="text", text=text)])


def _error(text: str) -> mcp_types.CallToolResult:
    return mcp_types.CallToolResult(content=[mcp_types.TextContent(type="text", text=text)], is_error=True)
