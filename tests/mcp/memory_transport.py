"""A transport to a server in this process: the smallest connector, as the test of the transport table."""

import asyncio
import contextlib
from typing import Any

import mcp_types
from mcp.server.lowlevel.server import Server
from mcp.shared.memory import create_client_server_memory_streams

from holdfast.mcp.client.endpoint import Endpoint, Streams


async def list_tools(context: object, params: object) -> mcp_types.ListToolsResult:
    """One tool."""
    tool = mcp_types.Tool(name="greet", input_schema={"type": "object"})
    return mcp_types.ListToolsResult(tools=[tool])


async def call_tool(context: object, params: object) -> mcp_types.CallToolResult:
    """A greeting."""
    return mcp_types.CallToolResult(content=[mcp_types.TextContent(type="text", text="hello")])


def greeting_server() -> Server[Any]:
    """A server with one tool, `greet`."""
    return Server("greeting", on_list_tools=list_tools, on_call_tool=call_tool)


@contextlib.asynccontextmanager
async def connect(endpoint: Endpoint) -> Streams:
    """Open the message streams of a server in this process."""
    server = greeting_server()
    async with create_client_server_memory_streams() as (client_streams, server_streams):
        serving = asyncio.create_task(server.run(*server_streams, server.create_initialization_options()))
        try:
            yield client_streams
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)
