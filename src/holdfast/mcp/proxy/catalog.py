"""The catalog: the resources and prompts of all servers in one list. A resource that two servers claim is left out."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

import mcp_types
from mcp.shared.exceptions import MCPError

from holdfast.core.errors import HoldfastError
from holdfast.mcp.client.connection import MAX_PAGES, ServerConnection
from holdfast.mcp.client.toolset import McpToolset, start_servers

_Item = TypeVar("_Item")


class ResourceCatalog:
    """Lists what servers offer in addition to tools. Listing starts only servers that are known to offer it."""

    def __init__(self, servers: Sequence[McpToolset]) -> None:
        self._servers = tuple(servers)
        self._owners: dict[str, set[str]] = {}
        self._starting: asyncio.Future[dict[str, HoldfastError]] | None = None

    async def ensure_started(self) -> None:
        """Start every unknown server, once. One that fails has reported it and is left out."""
        if self._starting is None:
            self._starting = asyncio.ensure_future(start_servers(self._servers))
        if not self._starting.done():
            await asyncio.shield(self._starting)

    async def resources(self) -> list[mcp_types.Resource]:
        """Every resource that exactly one server claims."""
        listed = await self._gather("resources", _resources)
        self._owners = {}
        for server, each in listed:
            self._owners.setdefault(str(each.uri), set()).add(server)
        return [each for _, each in listed if len(self._owners[str(each.uri)]) == 1]

    async def templates(self) -> list[mcp_types.ResourceTemplate]:
        """Every resource template."""
        return [each for _, each in await self._gather("resources", _templates)]

    async def prompts(self) -> list[mcp_types.Prompt]:
        """Every prompt, with its server's name as a prefix, like a tool."""
        listed = await self._gather("prompts", _prompts)
        return [each.model_copy(update={"name": f"{server}__{each.name}"}) for server, each in listed]

    async def server_of(self, uri: str) -> str:
        """The server that owns a resource. Raises MCPError unless there is exactly one."""
        if uri not in self._owners:
            await self.resources()
        owners = self._owners.get(uri) or {
            server
            for server, each in await self._gather("resources", _templates)
            if (stem := each.uri_template.partition("{")[0]) and uri.startswith(stem)
        }
        if len(owners) != 1:
            raise MCPError(mcp_types.INVALID_PARAMS, f"{len(owners)} servers have a resource {uri!r}")
        return next(iter(owners))

    async def server_of_template(self, template: str) -> str:
        """The server that lists a resource template. Raises MCPError unless there is exactly one."""
        listed = await self._gather("resources", _templates)
        owners = {server for server, each in listed if each.uri_template == template}
        if len(owners) != 1:
            raise MCPError(mcp_types.INVALID_PARAMS, f"{len(owners)} servers have a template {template!r}")
        return next(iter(owners))

    async def _gather(
        self, what: str, list_all: Callable[[ServerConnection], Awaitable[list[_Item]]]
    ) -> list[tuple[str, _Item]]:
        async def one(toolset: McpToolset) -> list[tuple[str, _Item]]:
            try:
                connection = await toolset.connection()
                return [(toolset.spec.name, each) for each in await list_all(connection)]
            except (HoldfastError, MCPError):
                return []  # calls to its tools report why it does not answer

        found = await asyncio.gather(*(one(each) for each in self._servers if what in each.extras))
        return [each for part in found for each in part]


async def _resources(connection: ServerConnection) -> list[mcp_types.Resource]:
    return [each async for page in _pages(connection.client.list_resources) for each in page.resources]


async def _templates(connection: ServerConnection) -> list[mcp_types.ResourceTemplate]:
    pages = _pages(connection.client.list_resource_templates)
    return [each async for page in pages for each in page.resource_templates]


async def _prompts(connection: ServerConnection) -> list[mcp_types.Prompt]:
    return [each async for page in _pages(connection.client.list_prompts) for each in page.prompts]


async def _pages(list_page: Callable[..., Awaitable[Any]]) -> Any:
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await list_page(cursor=cursor)
        yield page
        cursor = page.next_cursor
        if cursor is None:
            return
