"""Ports of the sandbox reach the person's browser, and granted ports of the host reach programs; others do not."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import pytest
from tests.commands.conftest import Shell
from tests.commands.test_background import start, status_of, until

from holdfast.commands import CommandSandbox, listen_on_host, serve_host_port, serve_preview
from holdfast.core.errors import CommandError

# The queue has room for every connection of the test: one that does not fit is tried again only after seconds.
SERVER = "import http.server, socketserver as s; s.TCPServer.allow_reuse_address = True; s.TCPServer.request_queue_size = 128; http.server.HTTPServer(('127.0.0.1', 8123), http.server.SimpleHTTPRequestHandler).serve_forever()"


@contextlib.asynccontextmanager
async def served(serving: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(serving)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def get(port: int, path: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    with contextlib.closing(writer):
        writer.write(f"GET {path} HTTP/1.0\r\n\r\n".encode())
        return await reader.read()


async def test_a_server_in_the_sandbox_is_previewed_on_the_loopback_of_the_host(
    sandbox: CommandSandbox,
) -> None:
    process, _ = await start(sandbox, "python3", "-c", SERVER)
    await until(lambda: status_of(sandbox, process).ports)
    with listen_on_host() as listener:
        assert listener.getsockname()[0] == "127.0.0.1"
        async with served(serve_preview(sandbox, 8123, listener)):
            port = listener.getsockname()[1]
            for answer in await asyncio.gather(*(get(port, "/notes.txt") for _ in range(100))):
                assert answer.endswith(b"notes\n")
            await sandbox.stop(process)
            with contextlib.suppress(ConnectionError):
                assert await get(port, "/notes.txt") == b""


async def test_a_granted_port_of_the_host_is_at_the_same_port_inside(
    sandbox: CommandSandbox, shell: Shell
) -> None:
    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.closing(writer):
            writer.write(b"hello " + await reader.readline())
            await writer.drain()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo you >&3 && cat <&3"
    async with server:
        assert (await shell(client)).outcome.code == 1
        listener, _ = await sandbox.listen(port)
        with listener:
            async with served(serve_host_port(listener, port)):
                assert (await shell(client)).output == "hello you\n"
        assert (await shell(client)).outcome.code == 1


def test_a_taken_port_is_named() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(CommandError, match="Address already in use"),
    ):
        listen_on_host(taken.getsockname()[1])
