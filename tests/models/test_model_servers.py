"""Local servers are found by asking; whatever else listens there is left alone."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
from tests.models.speaking import Serve

from holdfast.models import local_servers
from holdfast.models.local_servers import usual_ports

Listen = Callable[[bytes | None], Awaitable[int]]


@pytest.fixture
async def listen() -> AsyncIterator[Listen]:
    """Opens a port that answers these bytes to whoever asks, or None: nothing, ever."""
    async with AsyncExitStack() as stack:

        async def start(answer: bytes | None) -> int:
            async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await reader.readuntil(b"\r\n\r\n")
                if answer is not None:
                    writer.write(answer)
                else:
                    await reader.read()
                writer.close()

            server = await asyncio.start_server(connected, "127.0.0.1", 0)
            stack.callback(server.close)
            port: int = server.sockets[0].getsockname()[1]
            return port

        yield start


async def test_a_server_is_found_with_its_models(serve: Serve) -> None:
    stub = await serve(["hi"])
    port = int(stub.url.rpartition(":")[2])
    [server] = await local_servers([("llama-server", port)])
    assert server.models == (f"server:http://127.0.0.1:{port}/v1#stub-model",)


async def test_an_ollama_on_another_port_is_named_by_its_address(serve: Serve) -> None:
    stub = await serve(["hi"])
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
def test_ollama_is_looked_for_where_its_own_variable_says_and_only_here(host: str, port: int | None) -> None:
    found = dict(usual_ports({"OLLAMA_HOST": host}))
    assert found.get("Ollama") == port
    assert {"llama-server", "LM Studio"} <= found.keys()


async def test_an_answer_in_chunks_is_read(listen: Listen) -> None:
    body = b'{"object":"list","data":[{"id":"m"}]}'
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(bit), bit) for bit in (body[:7], body[7:])) + b"0\r\n\r\n"
    port = await listen(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
    [server] = await local_servers([("LM Studio", port)])
    assert server.models == (f"server:http://127.0.0.1:{port}/v1#m",)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.0 404 Not Found\r\n\r\n{}",
        b"HTTP/1.0 200 OK\r\n\r\n<html>",
        b'HTTP/1.0 200 OK\r\n\r\n{"data": "no list"}',
        b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)
async def test_what_is_no_server_of_models_is_left_alone(listen: Listen, answer: bytes) -> None:
    assert await local_servers([("Ollama", await listen(answer))]) == ()


async def test_a_port_that_never_answers_does_not_hold_us_up(listen: Listen) -> None:
    assert await local_servers([("Ollama", await listen(None))], limit_seconds=0.01) == ()


async def test_a_port_where_nobody_listens_is_no_error() -> None:
    assert await local_servers([("Ollama", 9)]) == ()
