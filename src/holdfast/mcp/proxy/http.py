"""The proxy's HTTP server on loopback, for clients that do not start the proxy themselves. Every request needs the token."""

import asyncio
import contextlib
import hmac
import socket
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from mcp.server.lowlevel.server import Server
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.mcp.bearer import bearer_token

HOST = "127.0.0.1"


class BearerTokenMiddleware:
    """Rejects every HTTP request without the token in its `Authorization` header."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            header = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
            given = bearer_token(header) or ""
            if not hmac.compare_digest(given.encode(), self._expected):
                refusal = PlainTextResponse(
                    "a bearer token is required\n", 401, {"WWW-Authenticate": "Bearer"}
                )
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)


@contextlib.asynccontextmanager
async def serve_http(server: Server[Any], *, port: int, token: str) -> AsyncIterator[str]:
    """Serve until the block exits; yields the address. The library rejects foreign Host and Origin headers."""
    app = BearerTokenMiddleware(server.streamable_http_app(host=HOST), token)
    # At shutdown, open streams are closed at once and without a log message.
    config = uvicorn.Config(
        app, log_level="critical", access_log=False, lifespan="on", timeout_graceful_shutdown=0
    )
    listener = uvicorn.Server(config)
    with socket.create_server((HOST, port)) as listening_socket:
        serving = asyncio.create_task(listener.serve([listening_socket]))
        try:
            while not listener.started and not serving.done():  # noqa: ASYNC110 - uvicorn has no event for it
                await asyncio.sleep(0.005)
            yield f"http://{HOST}:{listening_socket.getsockname()[1]}/mcp"
        finally:
            listener.should_exit = True
            await serving
