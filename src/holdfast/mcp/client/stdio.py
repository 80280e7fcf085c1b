"""A server's process as a transport: the protocol's messages over a ward's lines.

It differs from the official stdio transport where a hostile server could use it: a line has a greatest length, what a
server sends unasked is rationed, an answer has to fit a request, and its children cannot outlive us.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import anyio
import mcp_types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from holdfast.mcp.client.notifications import RateLimiter
from holdfast.mcp.client.pending_requests import PendingRequests, ProtocolBroken
from holdfast.process.supervised import SupervisedProcess

MAX_LINE_BYTES = 16 << 20
STALL_SECONDS = 5.0
"""How long a server may pause in the middle of a message. Between messages it may think as long as it likes."""
STDIN_GRACE_SECONDS = 0.05
"""How long a server may take to end by itself once its input is closed. No call is under way then."""

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


@contextlib.asynccontextmanager
async def connect_stdio(
    ward: SupervisedProcess, ration: RateLimiter
) -> AsyncIterator[tuple[Incoming, Outgoing]]:
    """The two streams of a running server, which is stopped when the block is left."""
    to_us, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, to_server = anyio.create_memory_object_stream[SessionMessage](0)
    ledger = PendingRequests()
    tasks = [
        asyncio.create_task(_read(ward, to_us, ration, ledger)),
        asyncio.create_task(_write(ward, to_server, ledger)),
    ]
    try:
        yield incoming, outgoing
    finally:
        with anyio.CancelScope(shield=True):
            outgoing.close()
            incoming.close()
            await ward.stop(grace_seconds=STDIN_GRACE_SECONDS)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for stream in (to_us, to_server):
                stream.close()


def parse(line: bytes, ration: RateLimiter, ledger: PendingRequests) -> SessionMessage | None:
    """The message in a line; None where it is none, or is one too many of those that nobody asked for.

    Raises ProtocolBroken where it is meant to be an answer and is the answer to nothing.
    """
    try:
        message = mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        ledger.heard_noise(line)
        return None
    ledger.heard(message)
    if not isinstance(message, mcp_types.JSONRPCResponse | mcp_types.JSONRPCError) and not ration.take():
        return None
    return SessionMessage(message)


async def _read(
    ward: SupervisedProcess,
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
    ration: RateLimiter,
    ledger: PendingRequests,
) -> None:
    """Hand every message on until the server closes its output or breaks the rules."""
    with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        async with incoming:
            try:
                async with contextlib.aclosing(
                    ward.lines(max_bytes=MAX_LINE_BYTES, stall_seconds=STALL_SECONDS)
                ) as lines:
                    async for line in lines:
                        if (message := parse(line, ration, ledger)) is not None:
                            await incoming.send(message)
            except ProtocolBroken as error:
                ward.protocol_error = str(error)
    await ward.drain()


async def _write(
    ward: SupervisedProcess, outgoing: MemoryObjectReceiveStream[SessionMessage], ledger: PendingRequests
) -> None:
    """Send every message until one side closes."""
    with contextlib.suppress(anyio.ClosedResourceError, ConnectionError, RuntimeError):
        async with outgoing:
            async for item in outgoing:
                ledger.sent(item.message)
                await ward.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode())
