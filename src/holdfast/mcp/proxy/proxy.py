"""The proxy: an MCP server through which any MCP client reaches the configured servers, and so the gate.

It serves over stdio, or over HTTP on loopback with a token. `server` implements what the client sees. This module opens
and closes it, and loads the MCP library only then.
"""

import contextlib
import secrets
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.core.errors import InvalidInput
from holdfast.mcp.client.toolset import McpToolset
from holdfast.mcp.contract import GateClient

if TYPE_CHECKING:
    from mcp.server.lowlevel.server import Server

    from holdfast.mcp.proxy.server import ProxyServer

MIN_TOKEN_LENGTH = 20


class Proxy:
    """Serves one session's tools to MCP clients."""

    def __init__(
        self,
        gate: GateClient,
        *,
        servers: Sequence[McpToolset] = (),
        trusted_clients: frozenset[str] = frozenset(),
        has_other_approvers: bool = False,
        answers_permission_prompts: bool = False,
    ) -> None:
        """`trusted_clients` are known to show an elicitation to a human; no other client can approve."""
        self._gate = gate
        self._servers = tuple(servers)
        self._trusted_clients = trusted_clients
        self._has_other_approvers = has_other_approvers
        self._answers_permission_prompts = answers_permission_prompts

    def create_server(self) -> "ProxyServer":
        """The protocol server, not yet connected to a client."""
        from holdfast.mcp.proxy.server import ProxyServer

        return ProxyServer(
            self._gate,
            servers=self._servers,
            trusted_clients=self._trusted_clients,
            has_other_approvers=self._has_other_approvers,
            answers_permission_prompts=self._answers_permission_prompts,
        )

    async def serve_stdio(self) -> None:
        """Serve the program that started this process until it closes our standard input."""
        await serve_over_stdio(self.create_server().server)

    @contextlib.asynccontextmanager
    async def serving_http(self, *, port: int = 0, token: str = "") -> AsyncIterator[tuple[str, str]]:
        """Serve on loopback while the block runs; yields the address and the token."""
        from holdfast.mcp.proxy.http import serve_http

        token = token or secrets.token_urlsafe(32)
        if len(token) < MIN_TOKEN_LENGTH:
            raise InvalidInput(
                f"the token needs at least {MIN_TOKEN_LENGTH} characters", hint="omit it to get a random one"
            )
        async with serve_http(self.create_server().server, port=port, token=token) as address:
            yield address, token


async def serve_over_stdio(server: "Server[Any]") -> None:
    """Serve the program that started this process until it closes our standard input or we are stopped."""
    from holdfast.mcp.proxy.stdio import standard_streams

    async with standard_streams() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
