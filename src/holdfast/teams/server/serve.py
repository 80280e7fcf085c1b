"""Serves the teams server over stdio to one client, or over HTTP on loopback to clients with a token."""

import contextlib
from collections.abc import AsyncIterator
from functools import partial

from holdfast.mcp import HOST, serve_on_loopback, serve_over_stdio
from holdfast.teams.broker import Broker
from holdfast.teams.server.auth import Caller, Callers
from holdfast.teams.server.calls import call_tool
from holdfast.teams.server.shared_broker import SharedBroker


async def serve_stdio(shared: SharedBroker, caller: Caller) -> None:
    """Serve one client until it closes our input. Its identity comes from the configuration."""
    from holdfast.teams.server.mcp_server import TeamsMcpServer

    await serve_over_stdio(TeamsMcpServer(shared.call, lambda _: caller).server)


@contextlib.asynccontextmanager
async def serving_http(
    broker: Broker | SharedBroker, callers: Callers, *, port: int = 0
) -> AsyncIterator[str]:
    """Serve on loopback while the block runs, and yield the URL. Every request needs a token we issued."""
    from holdfast.teams.server.http_auth import TokenMiddleware, caller_of
    from holdfast.teams.server.mcp_server import TeamsMcpServer

    call = broker.call if isinstance(broker, SharedBroker) else partial(call_tool, broker)
    messenger = TeamsMcpServer(call, lambda context: caller_of(context.request, callers))
    app = TokenMiddleware(messenger.server.streamable_http_app(host=HOST, stateless_http=True), callers)
    async with serve_on_loopback(app, port=port) as address:
        yield f"{address}/mcp"
