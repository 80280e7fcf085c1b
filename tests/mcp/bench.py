"""Our own servers as specs, and a toolset under test with what it said."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.core import Call, Json, JsonObject, call_id
from holdfast.mcp import McpToolset, ServerNotification, ServerSpec

SERVERS = Path(__file__).with_name("servers")


def spec_for(script: str, *arguments: str, name: str = "", **fields: Any) -> ServerSpec:
    """The spec of one of our own servers."""
    return ServerSpec(
        name=name or script,
        command=sys.executable,
        args=(str(SERVERS / f"{script}.py"), *arguments),
        **fields,
    )


class Bench:
    """A toolset with what it said, and a short way to call."""

    def __init__(self, toolset: McpToolset) -> None:
        self.toolset = toolset
        self.news: list[ServerNotification] = []
        self._calls = 0
        toolset.follow(self.news.append)

    async def call(self, tool: str, **arguments: Json) -> Json:
        """The result of a tool of this server."""
        return (await self.toolset.perform(self.wish(tool, arguments), is_staged=False)).result

    def wish(self, tool: str, arguments: JsonObject) -> Call:
        """A call of a tool of this server."""
        self._calls += 1
        return Call(
            id=call_id(1, self._calls), operation=f"{self.toolset.spec.name}.{tool}", arguments=arguments
        )


Opener = Callable[..., Bench]
