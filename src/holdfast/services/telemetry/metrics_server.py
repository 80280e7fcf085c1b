"""The endpoint that Prometheus reads: `/metrics` on this machine, without a token, because it has no contents."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from holdfast.core.errors import HoldfastError, InvalidInput

_REQUEST_BYTES = 16 * 1024
_SECONDS = 10.0
_HOSTS = ("127.0.0.1", "localhost")


@asynccontextmanager
async def serve_metrics(text: Callable[[], Awaitable[str]], port: int) -> AsyncIterator[int]:
    """Serve for the duration of the block; yields the port, which 0 leaves to the system. Raises InvalidInput."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(await _response(head, text))
                await writer.drain()
        writer.close()

    try:
        server = await asyncio.start_server(answer, "127.0.0.1", port, limit=_REQUEST_BYTES)
    except OSError as problem:
        raise InvalidInput(
            f"port {port} cannot be used for metrics: {problem.strerror}", hint="choose another one"
        ) from None
    async with server:
        yield int(server.sockets[0].getsockname()[1])


async def _response(head: bytes, text: Callable[[], Awaitable[str]]) -> bytes:
    request, *headers = head.decode("latin-1").split("\r\n")
    hosts = [line.partition(":")[2].strip() for line in headers if line.lower().startswith("host:")]
    if len(hosts) != 1 or hosts[0].rpartition(":")[0] not in _HOSTS:
        return _message("421 Misdirected Request", "this server does not have that name\n")
    if not request.startswith("GET /metrics "):
        return _message("404 Not Found", "the metrics are at /metrics\n")
    try:
        return _message("200 OK", await text())
    except HoldfastError as problem:
        return _message("503 Service Unavailable", f"{problem}\n")


def _message(status: str, text: str) -> bytes:
    body = text.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
