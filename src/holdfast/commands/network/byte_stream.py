"""A non-blocking socket with a buffer, and relaying between two of them with limits on idle time."""

import asyncio
import contextlib
import re
import socket
from collections.abc import Callable

_CHUNK = 1 << 16
_MAX_LINE = 1 << 12
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r\n")

OnBytes = Callable[[int], None]
"""Receives how many bytes moved on."""


class InvalidBody(Exception):
    """The body of a request is not what its head announced."""


class ByteStream:
    """One end of a connection. Bytes that were read too early stay in the buffer."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._buffer = bytearray()

    async def read(self, max_bytes: int = _CHUNK) -> bytes:
        """What has arrived, at least one byte; empty at the end of the stream."""
        if not self._buffer:
            await self._fill()
        data = bytes(self._buffer[:max_bytes])
        del self._buffer[:max_bytes]
        return data

    async def read_until(self, end: bytes, *, max_bytes: int) -> bytes | None:
        """The bytes before `end`, which is removed. None if the stream ends first. Raises InvalidBody if it does not come."""
        searched = 0
        while (at := self._buffer.find(end, max(0, searched - len(end)))) < 0 and len(
            self._buffer
        ) <= max_bytes:
            searched = len(self._buffer)
            if not await self._fill():
                return None
        if not 0 <= at <= max_bytes:
            raise InvalidBody(f"more than {max_bytes} bytes")
        data = bytes(self._buffer[:at])
        del self._buffer[: at + len(end)]
        return data

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self._socket, data)

    async def hung_up(self) -> None:
        """Return when the other end has closed; never, if it has sent bytes that nobody has read yet.

        Peeks only: a cancelled read could lose bytes that have arrived.
        """
        loop = asyncio.get_running_loop()
        readable = asyncio.Event()
        loop.add_reader(self._socket, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(self._socket)
        with contextlib.suppress(ConnectionError):
            if self._socket.recv(1, socket.MSG_PEEK):
                await asyncio.Event().wait()

    def end_writing(self) -> None:
        """Tell the other end that nothing more comes."""
        self._socket.shutdown(socket.SHUT_WR)

    async def discard(self, max_bytes: int) -> None:
        """Read to the end of the stream, or up to about `max_bytes`, and keep nothing."""
        while max_bytes > 0 and (data := await self.read()):
            max_bytes -= len(data)

    def close(self) -> None:
        self._socket.close()

    async def _fill(self) -> bool:
        data = await asyncio.get_running_loop().sock_recv(self._socket, _CHUNK)
        self._buffer += data
        return bool(data)


async def copy(source: ByteStream, to: ByteStream, on_bytes: OnBytes) -> None:
    """Relay until the source ends."""
    while data := await source.read():
        await to.send(data)
        on_bytes(len(data))


async def copy_sized(source: ByteStream, to: ByteStream, size: int, on_bytes: OnBytes) -> None:
    """Relay exactly `size` bytes; what follows them is not read."""
    while size:
        data = await source.read(size)
        if not data:
            raise InvalidBody("the body is shorter than announced")
        size -= len(data)
        await to.send(data)
        on_bytes(len(data))


async def copy_chunked(source: ByteStream, to: ByteStream, on_bytes: OnBytes) -> None:
    """Relay a chunked body, each chunk written again without extensions, and no trailers."""
    while True:
        line = await source.read_until(b"\r\n", max_bytes=_MAX_LINE)
        size = _CHUNK_SIZE.fullmatch((line or b"") + b"\r\n")
        if size is None:
            raise InvalidBody("a chunk is not valid")
        length = int(size[1], 16)
        if length == 0:
            break
        await to.send(b"%x\r\n" % length)
        await copy_sized(source, to, length, on_bytes)
        if await source.read_until(b"\r\n", max_bytes=0) is None:
            raise InvalidBody("a chunk is not valid")
        await to.send(b"\r\n")
    await to.send(b"0\r\n\r\n")


async def relay_both_ways(
    one: ByteStream,
    other: ByteStream,
    *,
    idle_seconds: float,
    half_open_seconds: float,
    on_sent: OnBytes = lambda _count: None,
    on_received: OnBytes = lambda _count: None,
) -> None:
    """Relay until both ends are done, one of them breaks, or nothing moves for too long.

    Once one end is done, the other has only `half_open_seconds` between two bytes.
    """
    seconds = idle_seconds

    async def one_way(source: ByteStream, to: ByteStream, on_bytes: OnBytes) -> None:
        nonlocal seconds

        def moved(count: int) -> None:
            on_bytes(count)
            _extend(limit, seconds)

        await copy(source, to, moved)
        to.end_writing()
        seconds = half_open_seconds
        _extend(limit, seconds)

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(idle_seconds) as limit:
            try:
                async with asyncio.TaskGroup() as ways:
                    ways.create_task(one_way(one, other, on_sent))
                    ways.create_task(one_way(other, one, on_received))
            except* OSError:
                pass


async def relay_request(
    client: ByteStream,
    server: ByteStream,
    *,
    body_bytes: int | None,
    idle_seconds: float,
    on_sent: OnBytes,
    on_received: OnBytes,
) -> None:
    """Relay the body of one request (None: chunked) and its whole response. What the client sends after it is not read."""

    async def send_body() -> None:
        def sent(count: int) -> None:
            on_sent(count)
            _extend(limit, idle_seconds)

        with contextlib.suppress(OSError):  # a server may answer before it has read everything
            if body_bytes is None:
                await copy_chunked(client, server, sent)
            else:
                await copy_sized(client, server, body_bytes, sent)

    def received(count: int) -> None:
        on_received(count)
        _extend(limit, idle_seconds)

    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(idle_seconds) as limit:
            try:
                async with asyncio.TaskGroup() as ways:
                    body = ways.create_task(send_body())
                    await copy(server, client, received)
                    body.cancel()
            except* (OSError, InvalidBody):
                pass


def _extend(limit: asyncio.Timeout, seconds: float) -> None:
    if not limit.expired():
        limit.reschedule(asyncio.get_running_loop().time() + seconds)
