"""The proxy over HTTP on loopback, for clients that do not start the proxy themselves. Every request needs the token."""

import contextlib
import hmac
from collections.abc import AsyncIterator
from typing import Any

from mcp.server.lowlevel.server import Server
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.mcp.bearer import bearer_token
from holdfast.mcp.loopback import HOST, serve_on_loopback


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
    """Serve until the block exits; yields the address."""
    app = BearerTokenMiddleware(server.streamable_http_app(host=HOST), token)
    async with serve_on_loopback(app, port=port) as address:
        yield f"{address}/mcp"
