"""A server's process: started under a warden, spoken to line by line, gone when we are.

This is the stdio transport of the protocol. It differs from the official one where a hostile server could use it: a
line has a greatest length, what a server sends unasked is rationed, and its children cannot outlive us.
"""

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import anyio
import mcp_types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from holdfast.core.errors import ToolFailed
from holdfast.mcp.ration import Ration

MAX_LINE_BYTES = 16 << 20
LAST_WORDS_BYTES = 4096
STDIN_GRACE_SECONDS = 0.05
"""How long a server may take to end by itself once its input is closed. No call is under way then."""
STOP_SECONDS = 3.0

_WARDEN = Path(__file__).with_name("warden.py")

Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


class Process:
    """One running server and its warden."""

    def __init__(self, process: asyncio.subprocess.Process, lifeline: int) -> None:
        self._process = process
        self._lifeline = lifeline
        self._last_words = bytearray()
        self.ended = asyncio.Event()
        """Set when it says no more, whoever ended it."""
        self.trouble = ""
        """Why we hung up on it, where we did."""

    @property
    def pid(self) -> int:
        """Of the warden; the server is its child."""
        return self._process.pid

    @property
    def last_words(self) -> str:
        """The end of what it wrote to standard error."""
        return self._last_words.decode(errors="replace").strip()

    @property
    def ending(self) -> str:
        """How it ended, for a person."""
        if self.trouble:
            return self.trouble
        code = self._process.returncode
        words = self.last_words.splitlines()
        how = "ended" if code in (0, None) else f"ended with code {code}"
        return f"{how}: {words[-1][:500]}" if words else how

    async def stop(self) -> None:
        """Close its input, give it a moment, then have the warden end it. Idempotent; never longer than STOP_SECONDS."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._wait(STDIN_GRACE_SECONDS)
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
        if not await self._wait(STOP_SECONDS):
            self._process.kill()  # the kernel then kills the server
            await self._wait(STOP_SECONDS)

    async def _wait(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), seconds)
        return self._process.returncode is not None

    async def read(
        self, incoming: MemoryObjectSendStream[SessionMessage | Exception], ration: Ration
    ) -> None:
        """Hand every message on until the server closes its output or breaks the rules."""
        assert self._process.stdout is not None
        with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async with incoming:
                await self._hand_on(incoming, ration)
        self.ended.set()
        # A pipe that nobody reads never ends, and with it the process would not either.
        while await self._process.stdout.read(1 << 16):
            pass

    async def _hand_on(
        self, incoming: MemoryObjectSendStream[SessionMessage | Exception], ration: Ration
    ) -> None:
        assert self._process.stdout is not None
        buffer = bytearray()
        while chunk := await self._process.stdout.read(1 << 16):
            buffer += chunk
            if b"\n" in chunk:
                *lines, rest = bytes(buffer).split(b"\n")
                buffer = bytearray(rest)
                for line in lines:
                    if line.strip() and (message := parse(line, ration)) is not None:
                        await incoming.send(message)
            if len(buffer) > MAX_LINE_BYTES:
                self.trouble = f"sent a message of more than {MAX_LINE_BYTES >> 20} MiB and was cut off"
                return

    async def write(self, outgoing: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Send every message until one side closes."""
        assert self._process.stdin is not None
        with contextlib.suppress(anyio.ClosedResourceError, ConnectionError, RuntimeError):
            async with outgoing:
                async for item in outgoing:
                    line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                    self._process.stdin.write(line.encode() + b"\n")
                    await self._process.stdin.drain()

    async def listen(self) -> None:
        """Keep the end of its standard error."""
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(1 << 16):
            self._last_words += chunk
            del self._last_words[:-LAST_WORDS_BYTES]


def parse(line: bytes, ration: Ration) -> SessionMessage | None:
    """The message in a line; None where it is none, or is one too many of those that nobody asked for."""
    try:
        message = mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        # Servers print stray lines to standard output; that alone is no reason to give one up.
        ration.spoil()
        return None
    if not isinstance(message, mcp_types.JSONRPCResponse | mcp_types.JSONRPCError) and not ration.take():
        return None
    return SessionMessage(message)


@contextlib.asynccontextmanager
async def run(
    command: str, arguments: list[str], *, environment: Mapping[str, str], folder: Path, ration: Ration
) -> AsyncIterator[tuple[Process, Incoming, Outgoing]]:
    """A server, running until the block is left. Raises ToolFailed where it cannot be started."""
    reading, lifeline = os.pipe()
    try:
        started = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(_WARDEN), str(reading), command, *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=folder,
            env=dict(environment),
            pass_fds=[reading],
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        os.close(lifeline)
        raise ToolFailed(f"{command}: cannot be started: {error}") from error
    finally:
        os.close(reading)
    process = Process(started, lifeline)
    to_us, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, to_server = anyio.create_memory_object_stream[SessionMessage](0)
    tasks = [
        asyncio.create_task(process.read(to_us, ration)),
        asyncio.create_task(process.write(to_server)),
        asyncio.create_task(process.listen()),
    ]
    try:
        yield process, incoming, outgoing
    finally:
        with anyio.CancelScope(shield=True):
            outgoing.close()
            incoming.close()
            await process.stop()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for stream in (to_us, to_server):
                stream.close()
