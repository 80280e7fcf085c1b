"""Servers reached over HTTP that mean harm: a body without end, and one that unpacks to more than it is."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from tests.mcp.bench import Bench, Opener

from holdfast.core.errors import ToolError
from holdfast.mcp import ServerSpec

MEBIBYTE = b"x" * (1 << 20)
Answer = Callable[[asyncio.StreamWriter, Any], Awaitable[None]]


@asynccontextmanager
async def serving(answer_call: Answer) -> AsyncIterator[str]:
    """An address where a server of the older era answers by hand, and calls as it is told to."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                length = head.partition("content-length: ")[2].partition("\r\n")[0]
                message = json.loads(await reader.readexactly(int(length))) if length else {}
                await answer(writer, message)
        writer.close()

    async def answer(writer: asyncio.StreamWriter, message: Any) -> None:
        match message.get("method"):
            case "initialize":
                info = {"name": "far", "version": "1"}
                reply: dict[str, object] = {"protocolVersion": "2025-11-25", "serverInfo": info}
                reply["capabilities"] = {"tools": {}}
                await respond(writer, message, reply)
            case "tools/list":
                tool = {"name": "work", "inputSchema": {"type": "object"}}
                await respond(writer, message, {"tools": [tool]})
            case "tools/call":
                await answer_call(writer, message)
            case "notifications/initialized":
                writer.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
            case _:
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"


async def respond(writer: asyncio.StreamWriter, message: Any, result: object, *headers: str) -> None:
    """A JSON body with a result."""
    body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
    await send(writer, body, *headers)


async def send(
    writer: asyncio.StreamWriter, body: bytes, *headers: str, kind: str = "application/json"
) -> None:
    """A whole response."""
    lines = ("HTTP/1.1 200 OK", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *headers)
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
    await writer.drain()


def far(opened: Opener, address: str) -> Bench:
    """The toolset of that server."""
    return opened(ServerSpec(name="far", url=address, call_seconds=20.0))


async def test_a_body_without_end_is_cut_off(opened: Opener) -> None:
    sent = 0

    async def endless(writer: asyncio.StreamWriter, message: Any) -> None:
        nonlocal sent
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        while True:
            writer.write(f"{len(MEBIBYTE):x}\r\n".encode() + MEBIBYTE + b"\r\n")
            await writer.drain()
            sent += 1

    async with serving(endless) as address:
        bench = far(opened, address)
        with pytest.raises(ToolError, match="more than 16 MiB"):
            await bench.call("work")
        await bench.toolset.close()
    assert sent < 40


async def test_a_body_is_not_unpacked(opened: Opener) -> None:
    async def bomb(writer: asyncio.StreamWriter, message: Any) -> None:
        await send(writer, gzip.compress(MEBIBYTE * 20), "Content-Encoding: gzip")

    async with serving(bomb) as address:
        bench = far(opened, address)
        with pytest.raises(ToolError):
            await bench.call("work")
        await bench.toolset.close()


async def test_an_ordinary_body_is_an_answer(opened: Opener) -> None:
    async def good(writer: asyncio.StreamWriter, message: Any) -> None:
        await respond(writer, message, {"content": [{"type": "text", "text": "well"}]})

    async with serving(good) as address:
        bench = far(opened, address)
        assert await bench.call("work") == "well"
        await bench.toolset.close()


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_an_answer_of_crumbs_is_cut_off_and_the_next_is_taken(opened: Opener, kind: str) -> None:
    crumb = {"type": "text", "text": "x", "annotations": {"audience": ["user"]}}
    answers = iter([[crumb] * 20_000, [crumb]])

    async def crumble(writer: asyncio.StreamWriter, message: Any) -> None:
        body = wire(message["id"], {"content": next(answers)})
        if kind == "text/event-stream":
            body = b"data: " + body + b"\n\n"
        await send(writer, body, kind=kind)

    async with serving(crumble) as address:
        bench = far(opened, address)
        with pytest.raises(ToolError, match="more than 20,000 parts"):
            await bench.call("work")
        assert await bench.call("work") == "x"
        await bench.toolset.close()


def wire(id: object, result: object) -> bytes:
    """A JSON-RPC answer."""
    return json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode()


@pytest.mark.parametrize(
    ("kind", "body", "reason"),
    [
        ("application/json", wire(999, {"content": []}), "broke the protocol: .*answered another request"),
        ("application/json", b'{"jsonrpc": "2.0", "id": 1, "resul', "broke the protocol: .*no whole answer"),
        ("application/json", b'["not", "an", "answer"]', "broke the protocol: .*no whole answer"),
        ("application/json", b"", "broke the protocol: .*no whole answer"),
        ("text/html", b"<p>well</p>", "Unexpected content type: text/html"),
        ("text/event-stream", b'data: {"jsonrpc": "2.0", "id"\n\n', "broke the protocol: "),
        ("text/event-stream", b"", "closed the connection"),
    ],
)
async def test_a_garbled_answer_is_an_error_that_names_the_server(
    opened: Opener, kind: str, body: bytes, reason: str
) -> None:
    async def garble(writer: asyncio.StreamWriter, message: Any) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()

    async with serving(garble) as address:
        bench = far(opened, address)
        await bench.toolset.start()
        with pytest.raises(ToolError, match=f"server 'far' .*{reason}"):
            await bench.call("work")
        await bench.toolset.close()
