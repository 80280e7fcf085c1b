"""Conversion of the gate's tools and answers to MCP types."""

from typing import Any, assert_never, cast

import mcp_types
import msgspec
from mcp.shared.exceptions import MCPError

from holdfast.core import Answer, Failed, Json, Parked, Refused, Returned, Tool


def to_mcp_tool(tool: Tool) -> mcp_types.Tool:
    """A tool as an MCP type."""
    # Some clients do not allow a dot, so `git.git_log` is `git__git_log`; a server's name never contains `__`.
    return mcp_types.Tool(
        name=tool.name.replace(".", "__", 1),
        description=tool.description,
        input_schema=tool.parameters or {"type": "object"},
        # Before protocol 2026-07-28 only an object may be described; a client of that time would refuse the whole list.
        output_schema=tool.returns if tool.returns.get("type") == "object" else None,
        annotations=mcp_types.ToolAnnotations(
            read_only_hint=tool.is_read_only,
            destructive_hint=tool.is_destructive,
            idempotent_hint=tool.is_idempotent,
        ),
    )


def tool_result(answer: Answer) -> mcp_types.CallToolResult:
    """The result of a call. A refusal is also a result, so that the client's model reads the reason."""
    match answer:
        case Returned(value=dict(value)) if "content" in value:
            # A server sent it in exactly this form, and the library validates it again.
            wire: Any = value
            return cast("mcp_types.CallToolResult", wire)
        case Returned(value=dict(value)):
            # A tool of ours: a client that knows its output schema reads the value itself.
            text = mcp_types.TextContent(type="text", text=msgspec.json.encode(value).decode())
            return mcp_types.CallToolResult(content=[text], structured_content=value)
        case Returned():
            return text_result(
                answer.value if isinstance(answer.value, str) else msgspec.json.encode(answer.value).decode()
            )
        case Refused():
            return _error(f"DENIED: {answer.reason} (rule {answer.rule})")
        case Failed():
            return _error(answer.reason or answer.error)
        case Parked():
            return _error("DENIED: the call waits for approval")
        case _:
            assert_never(answer)


def result_value(answer: Answer) -> Json:
    """The returned value. Raises MCPError for any other answer, because these requests have no error result."""
    match answer:
        case Returned():
            return answer.value
        case Refused():
            raise MCPError(mcp_types.INVALID_REQUEST, f"DENIED: {answer.reason} (rule {answer.rule})")
        case Failed():
            raise MCPError(mcp_types.INTERNAL_ERROR, answer.reason or answer.error)
        case Parked():
            raise MCPError(mcp_types.INVALID_REQUEST, "DENIED: the call waits for approval")
        case _:
            assert_never(answer)


def text_result(text: str) -> mcp_types.CallToolResult:
    """A result with one text block."""
    return mcp_types.CallToolResult(content=[mcp_types.TextContent(type="text", text=text)])


def _error(text: str) -> mcp_types.CallToolResult:
    return mcp_types.CallToolResult(content=[mcp_types.TextContent(type="text", text=text)], is_error=True)
