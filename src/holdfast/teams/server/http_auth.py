"""Bearer-token authentication of the HTTP server."""

from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from holdfast.mcp import bearer_token
from holdfast.teams.errors import AskRefused
from holdfast.teams.server.auth import Caller, Callers


class TokenMiddleware:
    """ASGI middleware that rejects every HTTP request without a token we issued."""

    def __init__(self, app: ASGIApp, callers: Callers) -> None:
        self._app = app
        self._callers = callers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and _caller(Request(scope), self._callers) is None:
            refusal = PlainTextResponse("a token is needed\n", 401, {"WWW-Authenticate": "Bearer"})
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)


def caller_of(request: object, callers: Callers) -> Caller:
    """The caller of a request. Every request is checked, so an MCP session never passes to another caller."""
    caller = _caller(request, callers) if isinstance(request, Request) else None
    if caller is None:
        raise AskRefused("this request carries no valid token")
    return caller


def _caller(request: Request, callers: Callers) -> Caller | None:
    token = bearer_token(request.headers.get("authorization", ""))
    return callers.find(token) if token is not None else None
