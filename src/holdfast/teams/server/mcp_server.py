"""The broker as tools of the Model Context Protocol. Operators get more of them than teams.

The token identifies the sender. A `fromTeam` argument must match it, except for operators.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import mcp_types
import msgspec
from mcp.server.context import ServerRequestContext as Context
from mcp.server.lowlevel.server import Server

from holdfast.core import VERSION, JsonObject
from holdfast.core.errors import HoldfastError
from holdfast.teams.server.auth import Caller
from holdfast.teams.server.calls import ToolAnswer, error_answer, tools_for
from holdfast.teams.server.tools import ServerTool

CallTool = Callable[[Caller, str, JsonObject], Awaitable[ToolAnswer]]
"""Runs a tool for a caller."""


class TeamsMcpServer:
    """An MCP server; `identify` returns the caller of a request, and `call_tool` answers it."""

    def __init__(self, call_tool: CallTool, identify: Callable[[Context], Caller]) -> None:
        self._call = call_tool
        self._identify = identify
        self.server: Server[Any] = Server(
            "holdfast-teams",
            version=VERSION,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
        )
        # Team messages are private: the SDK's tracing middleware must not export them.
        self.server.middleware[:] = []

    async def _list_tools(
        self, context: Context, params: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListToolsResult:
        return mcp_types.ListToolsResult(tools=list(map(_tool, tools_for(self._identify(context)))))

    async def _call_tool(
        self, context: Context, params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult:
        caller = self._identify(context)
        try:
            return _result(await self._call(caller, params.name, params.arguments or {}))
        except HoldfastError as error:
            return _result(error_answer(error))


def _tool(tool: ServerTool) -> mcp_types.Tool:
    schema: JsonObject = {
        "type": "object",
        "properties": tool.parameters,
        "required": list(tool.required),
        "additionalProperties": False,
    }
    return mcp_types.Tool(name=tool.name, description=tool.description, input_schema=schema)


def _result(answer: ToolAnswer) -> mcp_types.CallToolResult:
    value = answer.content
    text = msgspec.json.encode(value).decode()
    content = mcp_types.TextContent(type="text", text=text)
    structured = value if isinstance(value, dict) else {"result": value}
    return mcp_types.CallToolResult(
        content=[content], structured_content=structured, is_error=answer.is_error
    )
