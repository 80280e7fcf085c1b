"""What protects an HTTP server on loopback from web pages and from connections that send half a request."""

import asyncio

import h11
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0
"""How long a client may take to send the header of a request."""


class LocalOnlyMiddleware:
    """Rejects every request whose Host or Origin is not exactly this server's: a web page must not reach it by another name.

    The library compares the start of these headers, which `127.0.0.1:80@evil` also has.
    """

    def __init__(self, app: ASGIApp, authority: str) -> None:
        self._app = app
        host, _, port = authority.rpartition(":")
        self._hosts = frozenset(f"{name}:{port}".encode() for name in (host, "localhost"))
        self._origins = frozenset(b"http://" + host for host in self._hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            hosts = [value for name, value in scope["headers"] if name == b"host"]
            origins = [value for name, value in scope["headers"] if name == b"origin"]
            if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
                await PlainTextResponse("unknown host\n", 421)(scope, receive, send)
                return
            if len(origins) > 1 or not self._origins.issuperset(each.lower() for each in origins):
                await PlainTextResponse("unknown origin\n", 403)(scope, receive, send)
                return
        await self._app(scope, receive, send)


class TimedHeaderProtocol(H11Protocol):
    """Closes a connection that sends half a header and no more. uvicorn limits only the time between requests."""

    _header_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._header_timer = self.loop.call_later(HEADER_SECONDS, self._close_without_header)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_timer()
        elif self._header_timer is None:  # the next header of this connection has begun
            self._header_timer = self.loop.call_later(HEADER_SECONDS, self._close_without_header)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _stop_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _close_without_header(self) -> None:
        self._header_timer = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()
