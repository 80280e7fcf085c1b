"""Ports between the sandbox and the host's loopback: previews for the person, and granted ports for programs.

`serve_preview` accepts on 127.0.0.1 of the host and connects inside the sandbox. `serve_host_port` does the opposite for a port that
the person granted, such as the one of a database.
"""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable

from holdfast.commands.contract import CommandSandbox
from holdfast.commands.network.byte_stream import ByteStream, relay_both_ways
from holdfast.core.errors import CommandError

MAX_CONNECTIONS = 64
_IDLE_SECONDS = 3_600.0
_HALF_OPEN_SECONDS = 60.0
_LOOPBACK = "127.0.0.1"

Connect = Callable[[], Awaitable[socket.socket]]


def listen_on_host(port: int = 0) -> socket.socket:
    """A socket on the loopback of this machine, never on another address; 0 takes any port. Raises CommandError."""
    try:
        return socket.create_server((_LOOPBACK, port))
    except (OSError, OverflowError) as error:
        raise CommandError(
            f"port {port} of this machine cannot be used: {getattr(error, 'strerror', None) or error}",
            hint="name another one with --at PORT",
        ) from error


async def serve_preview(sandbox: CommandSandbox, port: int, listener: socket.socket) -> None:
    """Forward connections on the host to a port of the sandbox, until cancelled."""
    await _forward(listener, lambda: sandbox.connect(port))


async def serve_host_port(
    listener: socket.socket, port: int, *, is_closed: Callable[[int], bool] = lambda _: False
) -> None:
    """Forward connections of programs to a port of the host's loopback, until cancelled, unless the port is closed to them.

    The listener is from `sandbox.listen(port)`.
    """
    await _forward(listener, lambda: _connect_on_host(port, is_closed))


async def _connect_on_host(port: int, is_closed: Callable[[int], bool]) -> socket.socket:
    if is_closed(port):
        raise CommandError(f"port {port} of this machine is closed to programs")
    connection = socket.socket()
    try:
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, (_LOOPBACK, port))
    except BaseException:
        connection.close()
        raise
    return connection


async def _forward(listener: socket.socket, connect: Connect) -> None:
    listener.setblocking(False)
    slots = asyncio.Semaphore(MAX_CONNECTIONS)
    accepted: set[socket.socket] = set()

    async def relay(connection: socket.socket) -> None:
        try:
            await _relay(connection, connect)
        finally:
            accepted.discard(connection)
            slots.release()

    try:
        async with asyncio.TaskGroup() as tasks:
            while True:
                await slots.acquire()
                connection, _ = await asyncio.get_running_loop().sock_accept(listener)
                accepted.add(connection)
                tasks.create_task(relay(connection))
    finally:
        for connection in accepted:  # of tasks that were cancelled before they began
            connection.close()


async def _relay(connection: socket.socket, connect: Connect) -> None:
    """One connection. If nobody listens at the other end, it is closed, as a closed port would do."""
    with connection, contextlib.suppress(OSError, CommandError):
        async with asyncio.timeout(10):
            other = await connect()
        with other:
            await relay_both_ways(
                ByteStream(connection),
                ByteStream(other),
                idle_seconds=_IDLE_SECONDS,
                half_open_seconds=_HALF_OPEN_SECONDS,
            )
