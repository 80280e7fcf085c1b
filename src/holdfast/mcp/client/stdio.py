"""The stdio transport of a server: JSON-RPC messages over the lines of a supervised process.

Unlike the official stdio transport, it withstands a hostile server: a line has a maximum length, unsolicited messages
are rate-limited, every response must match a request, and the server's child processes cannot outlive us.
"""

import asyncio
import contextlib

import anyio
import mcp_types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from holdfast.mcp.client.endpoint import Endpoint, Streams
from holdfast.mcp.client.notifications import RateLimiter
from holdfast.mcp.client.pending_requests import PendingRequests, ProtocolViolation
from holdfast.process.supervised import SupervisedProcess

MAX_LINE_BYTES = 16 << 20
STALL_SECONDS = 5.0
"""How long a server may pause within a message. Between messages there is no limit."""
STDIN_GRACE_SECONDS = 0.05
"""How long a server may take to exit once its input is closed. No call is running at that point."""

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


@contextlib.asynccontextmanager
async def connect(endpoint: Endpoint) -> Streams:
    """Open the message streams of a running program, which is stopped when the block exits."""
    process = endpoint.process
    assert process is not None
    to_us, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, to_server = anyio.create_memory_object_stream[SessionMessage](0)
    pending = PendingRequests()
    tasks = [
        asyncio.create_task(_read(process, to_us, endpoint.rate_limiter, pending)),
        asyncio.create_task(_write(process, to_server, pending)),
    ]
    try:
        yield incoming, outgoing
    finally:
        with anyio.CancelScope(shield=True):
            outgoing.close()
            incoming.close()
            await process.stop(grace_seconds=STDIN_GRACE_SECONDS)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for stream in (to_us, to_server):
                stream.close()


def parse_line(line: bytes, rate_limiter: RateLimiter, pending: PendingRequests) -> SessionMessage | None:
    """The message in a line; None for any other line, and for an unsolicited message over the rate limit.

    Raises ProtocolViolation for a response that answers nothing.
    """
    try:
        message = mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        pending.record_invalid_line(line)
        return None
    pending.record_received(message)
    is_response = isinstance(message, mcp_types.JSONRPCResponse | mcp_types.JSONRPCError)
    if not is_response and not rate_limiter.take():
        return None
    return SessionMessage(message)


async def _read(
    process: SupervisedProcess,
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
    rate_limiter: RateLimiter,
    pending: PendingRequests,
) -> None:
    """Pass on every message until the server closes its output or violates the protocol."""
    with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        async with incoming:
            try:
                async with contextlib.aclosing(
                    process.lines(max_bytes=MAX_LINE_BYTES, stall_seconds=STALL_SECONDS)
                ) as lines:
                    async for line in lines:
                        if (message := parse_line(line, rate_limiter, pending)) is not None:
                            await incoming.send(message)
            except ProtocolViolation as error:
                process.protocol_error = str(error)
    await process.drain()


async def _write(
    process: SupervisedProcess,
    outgoing: MemoryObjectReceiveStream[SessionMessage],
    pending: PendingRequests,
) -> None:
    """Send every message until one side closes."""
    with contextlib.suppress(anyio.ClosedResourceError, ConnectionError, RuntimeError):
        async with outgoing:
            async for item in outgoing:
                pending.record_sent(item.message)
                await process.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode())
