"""The proxy: one more guest. Any MCP client reaches the configured servers through it, and so through the gate.

It is an MCP server over stdio, or over HTTP on loopback with a token. What the client sees is in `front`; this module
only opens and closes, and loads the protocol library when it does.
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
        keeper: GateClient,
        *,
        servers: Sequence[McpToolset] = (),
        trusted_clients: frozenset[str] = frozenset(),
        can_ask_elsewhere: bool = False,
        answers_permissions: bool = False,
    ) -> None:
        """`trusted_clients` are those the person knows to show an elicitation to a human; no other's approval counts."""
        self._keeper = keeper
        self._servers = tuple(servers)
        self._trusted_clients = trusted_clients
        self._can_ask_elsewhere = can_ask_elsewhere
        self._answers_permissions = answers_permissions

    def front(self) -> "ProxyServer":
        """The protocol server, not yet connected to anything."""
        from holdfast.mcp.proxy.server import ProxyServer

        return ProxyServer(
            self._keeper,
            servers=self._servers,
            trusted_clients=self._trusted_clients,
            can_ask_elsewhere=self._can_ask_elsewhere,
            answers_permissions=self._answers_permissions,
        )

    async def serve_stdio(self) -> None:
        """Serve whoever started this process, until it closes our standard input."""
        await serve_over_stdio(self.front().server)

    @contextlib.asynccontextmanager
    async def serving_http(self, *, port: int = 0, token: str = "") -> AsyncIterator[tuple[str, str]]:
        """Serve on loopback while the block runs; yields address and token."""
        from holdfast.mcp.proxy.http import listening

        token = token or secrets.token_urlsafe(32)
        if len(token) < MIN_TOKEN_LENGTH:
            raise InvalidInput(
                f"a token has at least {MIN_TOKEN_LENGTH} characters", hint="leave it out for a fresh one"
            )
        async with listening(self.front().server, port=port, token=token) as address:
            yield address, token


async def serve_over_stdio(server: "Server[Any]") -> None:
    """Serve whoever started this process, until it closes our standard input or we are stopped."""
    from holdfast.mcp.proxy.stdio import standard_streams

    async with standard_streams() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
