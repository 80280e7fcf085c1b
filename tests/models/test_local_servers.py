"""Local model servers are found by querying their ports; any other program there is ignored."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
from tests.models.create import StartStub

from holdfast.models import local_servers
from holdfast.models.local_servers import default_ports

Listen = Callable[[bytes | None], Awaitable[int]]


@pytest.fixture
async def listen() -> AsyncIterator[Listen]:
    """Opens a port that responds with these bytes, or never, if None."""
    async with AsyncExitStack() as stack:

        async def start(response: bytes | None) -> int:
            async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await reader.readuntil(b"\r\n\r\n")
                if response is not None:
                    writer.write(response)
                else:
                    await reader.read()
                writer.close()

            server = await asyncio.start_server(connected, "127.0.0.1", 0)
            stack.callback(server.close)
            port: int = server.sockets[0].getsockname()[1]
            return port

        yield start


async def test_a_server_is_found_with_its_models(start_stub: StartStub) -> None:
    stub = await start_stub(["hi"])
    port = int(stub.url.rpartition(":")[2])
    [server] = await local_servers([("llama-server", port)])
    assert server.models == (f"server:http://127.0.0.1:{port}/v1#stub-model",)


async def test_ollama_on_another_port_is_named_by_its_address(start_stub: StartStub) -> None:
    stub = await start_stub(["hi"])
    port = int(stub.url.rpartition(":")[2])
    [server] = await local_servers([("Ollama", port)])
    assert server.models == (f"server:http://127.0.0.1:{port}/v1#stub-model",)


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("", 11434),
        ("127.0.0.1:11500", 11500),
        ("http://localhost:11500", 11500),
        (":11500", 11500),
        ("0.0.0.0", 11434),
        ("gpu.example:11434", None),
        ("127.0.0.1:port", None),
    ],
)
def test_ollama_host_sets_the_port_and_other_machines_are_ignored(host: str, port: int | None) -> None:
    found = dict(default_ports({"OLLAMA_HOST": host}))
    assert found.get("Ollama") == port
    assert {"llama-server", "LM Studio"} <= found.keys()


async def test_a_chunked_response_is_read(listen: Listen) -> None:
    body = b'{"object":"list","data":[{"id":"m"}]}'
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(bit), bit) for bit in (body[:7], body[7:])) + b"0\r\n\r\n"
    port = await listen(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
    [server] = await local_servers([("LM Studio", port)])
    assert server.models == (f"server:http://127.0.0.1:{port}/v1#m",)


@pytest.mark.parametrize(
    "response",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.0 404 Not Found\r\n\r\n{}",
        b"HTTP/1.0 200 OK\r\n\r\n<html>",
        b"HTTP/1.0 200 OK\r\n\r\n" + b"[" * 10_000,
        b'HTTP/1.0 200 OK\r\n\r\n{"data": "no list"}',
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
async def test_a_program_that_is_not_a_model_server_is_ignored(listen: Listen, response: bytes) -> None:
    assert await local_servers([("Ollama", await listen(response))]) == ()


async def test_a_port_that_never_responds_times_out(listen: Listen) -> None:
    assert await local_servers([("Ollama", await listen(None))], timeout_seconds=0.01) == ()


async def test_a_closed_port_is_ignored() -> None:
    assert await local_servers([("Ollama", 9)]) == ()
