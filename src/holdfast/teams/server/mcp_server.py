"""The desk: the switchboard as tools of the Model Context Protocol. Operators see more of them than teams do.

`from` is whoever the token was given to. A `fromTeam` in the arguments is only checked against it.
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
from holdfast.teams.server.tools import SERVICES, Service, ToolRequest


class TeamsMcpServer:
    """The protocol server of one switchboard; `identify` says who makes a request."""

    def __init__(self, board: Broker, identify: Callable[[Context], Caller]) -> None:
        self._board = board
        self._identify = identify
        self.server: Server[Any] = Server(
            "holdfast-teams", on_list_tools=self._list_tools, on_call_tool=self._call_tool
        )
        # What passes here is the teams' own and goes to no exporter of traces.
        self.server.middleware[:] = []

    async def _list_tools(
        self, context: Context, params: mcp_types.PaginatedRequestParams | None
    ) -> mcp_types.ListToolsResult:
        return mcp_types.ListToolsResult(tools=list(map(_tool, _offered(self._identify(context)))))

    async def _call_tool(
        self, context: Context, params: mcp_types.CallToolRequestParams
    ) -> mcp_types.CallToolResult:
        caller = self._identify(context)
        try:
            for service in _offered(caller):
                if service.name == params.name:
                    return _result(await self._serve(service, caller, params.arguments or {}))
            raise InvalidInput(f"there is no tool {params.name!r} for {caller.team}")
        except HoldfastError as error:
            return _result({"error": str(error), "code": error.code, "hint": error.hint}, is_error=True)

    async def _serve(self, service: Service, caller: Caller, arguments: JsonObject) -> Json:
        service.check(arguments)
        declared = arguments.get("fromTeam") or caller.team
        if declared != caller.team and not caller.is_operator:
            raise AskRefused(f"this token is that of {caller.team}, not of {declared}")
        return await service.run(ToolRequest(self._board, caller, str(declared), arguments))


def _offered(caller: Caller) -> list[Service]:
    return [service for service in SERVICES if caller.is_operator or not service.is_ours]


def _tool(service: Service) -> mcp_types.Tool:
    schema: JsonObject = {
        "type": "object",
        "properties": service.parameters,
        "required": list(service.needed),
        "additionalProperties": False,
    }
    return mcp_types.Tool(name=service.name, description=service.description, input_schema=schema)


def _result(value: Json, *, is_error: bool = False) -> mcp_types.CallToolResult:
    text = msgspec.json.encode(value).decode()
    content = mcp_types.TextContent(type="text", text=text)
    structured = value if isinstance(value, dict) else {"result": value}
    return mcp_types.CallToolResult(content=[content], structured_content=structured, is_error=is_error)
