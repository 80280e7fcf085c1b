"""The proxy's stdio transport: standard input and output as the connection to the program that started it.

The official transport uses a thread for every line and buffers a line without limit. Here the event loop watches both
descriptors, and a line has a maximum length.
"""

import asyncio
import contextlib
import os
import stat
import sys
from collections.abc import AsyncIterator, Iterator

import anyio
import mcp_types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from holdfast.core.errors import InvalidInput
from holdfast.mcp.client.stdio import MAX_LINE_BYTES, Incoming, Outgoing
from holdfast.process.supervised import InvalidLine, read_lines


@contextlib.asynccontextmanager
async def standard_streams() -> AsyncIterator[tuple[Incoming, Outgoing]]:
    """The message streams of the program that started us. Raises InvalidInput if standard input or output is a file."""
    with _claim_descriptor(0) as reading, _claim_descriptor(1) as writing:
        reader, writer = await _reader(reading), await _writer(writing)
        to_us, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, to_client = anyio.create_memory_object_stream[SessionMessage](0)
        tasks = [asyncio.create_task(_read(reader, to_us)), asyncio.create_task(_write(writer, to_client))]
        try:
            yield incoming, outgoing
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for stream in (to_us, incoming, outgoing, to_client):
                stream.close()
            writer.close()


@contextlib.contextmanager
def _claim_descriptor(number: int) -> Iterator[int]:
    """Take a standard stream for ourselves. Other code in this process then reads nothing and writes to stderr."""
    kind = os.fstat(number).st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or os.isatty(number)):
        raise InvalidInput(
            "standard input and output must be pipes: an MCP client is expected at the other end",
            hint="holdfast install claude",
        )
    ours = os.dup(number)
    replacement = os.dup(2) if number == 1 else os.open(os.devnull, os.O_RDONLY)
    os.dup2(replacement, number)
    os.close(replacement)
    try:
        yield ours
    finally:
        os.set_blocking(ours, True)
        os.dup2(ours, number)
        os.close(ours)


async def _reader(descriptor: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    file = os.fdopen(os.dup(descriptor), "rb", buffering=0)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), file)
    return reader


async def _writer(descriptor: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    file = os.fdopen(os.dup(descriptor), "wb", buffering=0)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, file)
    return asyncio.StreamWriter(transport, protocol, None, loop)


async def _read(
    reader: asyncio.StreamReader, incoming: MemoryObjectSendStream[SessionMessage | Exception]
) -> None:
    with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        async with incoming, contextlib.aclosing(read_lines(reader, max_bytes=MAX_LINE_BYTES)) as lines:
            try:
                async for line in lines:
                    await incoming.send(_message(line))
            except InvalidLine as error:
                print(f"the client sent {error}; the connection is closed", file=sys.stderr)


async def _write(writer: asyncio.StreamWriter, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
    with contextlib.suppress(anyio.ClosedResourceError, ConnectionError):
        async with outgoing:
            async for item in outgoing:
                line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                writer.write(line.encode() + b"\n")
                await writer.drain()


def _message(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error  # the library answers it as the protocol requires
