"""The transports over which Holdfast reaches MCP servers, in one table.

To add a transport: add a row here, add the connector module that the row names to `holdfast.mcp.client` (its contract
is in `holdfast.mcp.client.endpoint`), and document the key in `docs/guides/mcp.md`.
"""

from typing import Literal

from holdfast.core import Value

EntryType = Literal["stdio", "http", "streamable-http", "streamableHttp", "sse", ""]
"""What `type` of an entry in `mcp-servers.json` may say. The transport follows from `command` or from the URL's scheme."""


class ServerTransport(Value):
    """One way to reach a server."""

    name: str
    module: str
    """The module whose `connect` opens the transport. A name, because importing it loads the MCP library."""
    schemes: tuple[str, ...] = ()
    """The URL schemes that select this transport. Without any, Holdfast starts the server as a program."""
    local_schemes: tuple[str, ...] = ()
    """Unencrypted schemes, which are accepted only for this machine."""

    @property
    def starts_program(self) -> bool:
        """Whether the server is a program that Holdfast starts, and not an address."""
        return not self.schemes


STDIO = ServerTransport(name="stdio", module="holdfast.mcp.client.stdio")
URL_TRANSPORTS = (
    ServerTransport(
        name="http", module="holdfast.mcp.client.http", schemes=("https",), local_schemes=("http",)
    ),
)


def transport_for(scheme: str) -> ServerTransport | None:
    """The transport for a URL scheme."""
    return next(
        (each for each in URL_TRANSPORTS if scheme in (*each.schemes, *each.local_schemes)),
        None,
    )
