"""The broker as tools of the Model Context Protocol. Operators get more of them than teams.

The token identifies the sender. A `fromTeam` argument must match it, except for operators.
"""

from collections.abc import Callable
from typing import Any

import mcp_types
import msgspec
from mcp.server.context import ServerRequestContext as Context
from mcp.server.lowlevel.server import Server

from holdfast.core import Json, JsonObject
from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.teams.broker import Broker
from holdfast.teams.errors import AskRefused
from holdfast.teams.server.auth import Caller
from holdfast.teams.server.tools import TOOLS, ServerTool, ToolRequest, is_failed


class TeamsMcpServer:
    """The MCP server of one broker; `identify` returns the caller of a request."""

    def __init__(self, broker: Broker, identify: Callable[[Context], Caller]) -> None:
        self._broker = broker
        self._identify = identify
        self.server: Server[Any] = Server(
            "holdfast-teams", on_list_tools=self._list_tools, on_call_tool=self._call_tool
        )
        # Team messages are private: the SDK's tracing middleware must not export them.
        self.server.middleware[:] = []

    async def _list_tools(
        self, context: Context, params: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListToolsResult:
        return mcp_types.ListToolsResult(tools=list(map(_tool, _tools_for(self._identify(context)))))

    async def _call_tool(
        self, context: Context, params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult:
        caller = self._identify(context)
        try:
            for tool in _tools_for(caller):
                if tool.name == params.name:
                    answer = await self._serve(tool, caller, params.arguments or {})
                    return _result(answer, is_error=is_failed(answer))
            raise InvalidInput(f"there is no tool {params.name!r} for {caller.team}")
        except HoldfastError as error:
            return _result({"error": str(error), "code": error.code, "hint": error.hint}, is_error=True)

    async def _serve(self, tool: ServerTool, caller: Caller, arguments: JsonObject) -> Json:
        tool.check(arguments)
        declared = arguments.get("fromTeam") or caller.team
        if declared != caller.team and not caller.is_operator:
            raise AskRefused(f"this token belongs to {caller.team}, not to {declared}")
        return await tool.run(ToolRequest(self._broker, caller, str(declared), arguments))


def _tools_for(caller: Caller) -> list[ServerTool]:
    return [tool for tool in TOOLS if caller.is_operator or not tool.is_operator_only]


def _tool(tool: ServerTool) -> mcp_types.Tool:
    schema: JsonObject = {
        "type": "object",
        "properties": tool.parameters,
        "required": list(tool.required),
        "additionalProperties": False,
    }
    return mcp_types.Tool(name=tool.name, description=tool.description, input_schema=schema)


def _result(value: Json, *, is_error: bool = False) -> mcp_types.CallToolResult:
    text = msgspec.json.encode(value).decode()
    content = mcp_types.TextContent(type="text", text=text)
    structured = value if isinstance(value, dict) else {"result": value}
    return mcp_types.CallToolResult(content=[content], structured_content=structured, is_error=is_error)
