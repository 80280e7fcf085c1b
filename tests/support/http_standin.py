"""A local HTTP server that records requests and answers what a test wants. It speaks the real wire on loopback."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ReceivedRequest:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class HttpStandIn:
    """Answers each request with the next of `answers`: a status, and headers. Without one it asks `respond`, or answers 200."""

    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    requests: list[ReceivedRequest] = field(default_factory=list)
    is_silent: bool = False
    respond: Callable[[ReceivedRequest], Awaitable[tuple[int, bytes]]] | None = None
    """Answers a request with a status and a body where `answers` has none."""
    port: int = 0
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def received(self, count: int) -> list[ReceivedRequest]:
        """Wait until this many requests have arrived."""
        async with asyncio.timeout(60):
            while len(self.requests) < count:
                self._arrived.clear()
                await self._arrived.wait()
        return self.requests

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await _read_head(reader):
                first, *lines = head.decode().split("\r\n")
                method, path, _ = first.split(" ")
                headers = {
                    name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)
                }
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                received = ReceivedRequest(method, path, headers, body)
                self.requests.append(received)
                self._arrived.set()
                if self.is_silent:
                    await asyncio.Event().wait()
                status, extra, answer = 200, dict[str, str](), b""
                if self.answers:
                    status, extra = self.answers.pop(0)
                elif self.respond is not None:
                    status, answer = await self.respond(received)
                    extra = {"Content-Type": "application/json"}
                shown = "".join(f"{name}: {value}\r\n" for name, value in extra.items())
                start = f"HTTP/1.1 {status} X\r\n{shown}Content-Length: {len(answer)}\r\n\r\n"
                writer.write(start.encode() + answer)
                await writer.drain()
        finally:
            writer.close()


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    try:
        return (await reader.readuntil(b"\r\n\r\n"))[:-4]
    except asyncio.IncompleteReadError:
        return b""


@asynccontextmanager
async def http_standin() -> AsyncIterator[HttpStandIn]:
    """A server on a free port of loopback."""
    standin = HttpStandIn()
    tasks: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(standin.handle(reader, writer)))

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    standin.port = server.sockets[0].getsockname()[1]
    try:
        yield standin
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
