"""Hostile servers over HTTP: endless bodies, compressed bodies, malformed responses."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from tests.mcp.toolset_harness import OpenToolset, ToolsetHarness

from holdfast.core.errors import ToolError
from holdfast.mcp import ServerSpec

MEBIBYTE = b"x" * (1 << 20)
Answer = Callable[[asyncio.StreamWriter, Any], Awaitable[None]]


@asynccontextmanager
async def serving(answer_call: Answer) -> AsyncIterator[str]:
    """Serve a hand-written legacy server; `answer_call` answers its tool calls. Yields the address."""

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
                info = {"name": "remote", "version": "1"}
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
    """Send a JSON body with a result."""
    body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
    await send(writer, body, *headers)


async def send(
    writer: asyncio.StreamWriter, body: bytes, *headers: str, kind: str = "application/json"
) -> None:
    """Send a complete response."""
    lines = ("HTTP/1.1 200 OK", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *headers)
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
    await writer.drain()


def open_remote(open_toolset: OpenToolset, address: str) -> ToolsetHarness:
    """The toolset of the server at an address."""
    return open_toolset(ServerSpec(name="remote", url=address, call_seconds=20.0))


async def test_an_endless_body_is_cut_off(open_toolset: OpenToolset) -> None:
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
        harness = open_remote(open_toolset, address)
        with pytest.raises(ToolError, match="more than 16 MiB"):
            await harness.call("work")
        await harness.toolset.close()
    assert sent < 40


async def test_a_compressed_body_is_not_decompressed(open_toolset: OpenToolset) -> None:
    async def bomb(writer: asyncio.StreamWriter, message: Any) -> None:
        await send(writer, gzip.compress(MEBIBYTE * 20), "Content-Encoding: gzip")

    async with serving(bomb) as address:
        harness = open_remote(open_toolset, address)
        with pytest.raises(ToolError):
            await harness.call("work")
        await harness.toolset.close()


async def test_an_ordinary_body_is_accepted(open_toolset: OpenToolset) -> None:
    async def good(writer: asyncio.StreamWriter, message: Any) -> None:
        await respond(writer, message, {"content": [{"type": "text", "text": "well"}]})

    async with serving(good) as address:
        harness = open_remote(open_toolset, address)
        assert await harness.call("work") == "well"
        await harness.toolset.close()


@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
async def test_a_response_with_too_many_objects_is_an_error_and_the_next_one_is_accepted(
    open_toolset: OpenToolset, kind: str
) -> None:
    block = {"type": "text", "text": "x", "annotations": {"audience": ["user"]}}
    answers = iter([[block] * 20_000, [block]])

    async def send_blocks(writer: asyncio.StreamWriter, message: Any) -> None:
        body = response(message["id"], {"content": next(answers)})
        if kind == "text/event-stream":
            body = b"data: " + body + b"\n\n"
        await send(writer, body, kind=kind)

    async with serving(send_blocks) as address:
        harness = open_remote(open_toolset, address)
        with pytest.raises(ToolError, match="more than 20,000 objects"):
            await harness.call("work")
        assert await harness.call("work") == "x"
        await harness.toolset.close()


def response(id: object, result: object) -> bytes:
    """A JSON-RPC response."""
    return json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode()


@pytest.mark.parametrize(
    ("kind", "body", "reason"),
    [
        (
            "application/json",
            response(999, {"content": []}),
            "broke the protocol: .*answered a different request",
        ),
        (
            "application/json",
            b'{"jsonrpc": "2.0", "id": 1, "resul',
            "broke the protocol: .*an incomplete response",
        ),
        ("application/json", b'["not", "an", "answer"]', "broke the protocol: .*an incomplete response"),
        ("application/json", b"", "broke the protocol: .*an incomplete response"),
        ("text/html", b"<p>well</p>", "Unexpected content type: text/html"),
        ("text/event-stream", b'data: {"jsonrpc": "2.0", "id"\n\n', "broke the protocol: "),
        ("text/event-stream", b"", "closed the connection"),
    ],
)
async def test_a_malformed_response_is_an_error_that_names_the_server(
    open_toolset: OpenToolset, kind: str, body: bytes, reason: str
) -> None:
    async def malformed(writer: asyncio.StreamWriter, message: Any) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()

    async with serving(malformed) as address:
        harness = open_remote(open_toolset, address)
        await harness.toolset.start()
        with pytest.raises(ToolError, match=f"server 'remote' .*{reason}"):
            await harness.call("work")
        await harness.toolset.close()
