"""The test servers as specs, and a toolset under test with its notifications."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.fork_server import forked_python

from holdfast.core import Call, Json, JsonObject, call_id
from holdfast.mcp import McpToolset, ServerNotification, ServerSpec

SERVERS = Path(__file__).with_name("servers")
LIBRARY_SERVERS = frozenset(["friendly", "notifying", "rendezvous"])
"""Servers written with the MCP library. They start as forks; the others need only the bare interpreter."""


def server_command(script: str, *arguments: str) -> list[str]:
    """The command line of a test server."""
    words = (str(SERVERS / f"{script}.py"), *arguments)
    return forked_python(*words) if script in LIBRARY_SERVERS else [sys.executable, *words]


def spec_for(script: str, *arguments: str, name: str = "", **fields: Any) -> ServerSpec:
    """The spec of a test server."""
    command, *args = server_command(script, *arguments)
    return ServerSpec(name=name or script, command=command, args=tuple(args), **fields)


class ToolsetHarness:
    """A toolset, its notifications, and a short way to call its tools."""

    def __init__(self, toolset: McpToolset) -> None:
        self.toolset = toolset
        self.notifications: list[ServerNotification] = []
        self._calls = 0
        toolset.add_listener(self.notifications.append)

    async def call(self, tool: str, **arguments: Json) -> Json:
        """Call a tool of this server and return the result."""
        return (await self.toolset.perform(self.make_call(tool, arguments), is_staged=False)).result

    def make_call(self, tool: str, arguments: JsonObject) -> Call:
        """A call of a tool of this server."""
        self._calls += 1
        return Call(
            id=call_id(1, self._calls), operation=f"{self.toolset.spec.name}.{tool}", arguments=arguments
        )


OpenToolset = Callable[..., ToolsetHarness]
