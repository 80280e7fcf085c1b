"""One broker for all processes that use the same teams.

The first process leads: it opens the broker and listens on a socket in the private folder of the teams. The others send
it their tool calls. When the leader ends, one of the others takes over. So members stay awake between messages, and the
limits, budgets and deadlock checks of a broker hold for all processes together.
"""

import asyncio
import fcntl
import os
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

import msgspec

from holdfast.core import JsonObject, Value
from holdfast.store import private_folder
from holdfast.teams.broker import Broker
from holdfast.teams.errors import TeamError
from holdfast.teams.server.auth import Caller
from holdfast.teams.server.calls import ToolAnswer, call_tool, error_answer

RETRY_SECONDS = 0.05
MAX_BYTES = 64 << 20
MAX_SOCKET_PATH = 100
_WITH_MESSAGE_ID = ("teams_ask", "teams_send_message")
_NOT_REPEATED = ("teams_notify", "teams_fork")


class _Request(Value):
    caller: Caller
    tool: str
    arguments: JsonObject


class LeaderLost(TeamError):
    """The process that leads ended during a call."""


class SharedBroker:
    """Answers tool calls while its `async with` block runs, as the leader or through it."""

    def __init__(self, folder: Path, lead: Callable[[], AbstractAsyncContextManager[Broker]]) -> None:
        self._folder = folder
        self._lead = lead
        self._broker: Broker | None = None
        self._is_ready = asyncio.Event()
        self._is_closing = asyncio.Event()
        self._calls: set[asyncio.Task[ToolAnswer]] = set()
        self._connections: set[StreamWriter] = set()
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        private_folder(self._folder)
        self._running = asyncio.create_task(self._run())
        try:
            await self._until_ready()
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_closing.set()
        if kind is None and self._broker is not None and self._running is not None:
            await asyncio.wait({self._running})
        await self._stop()

    @property
    def is_leader(self) -> bool:
        """Whether this process has the broker."""
        return self._broker is not None

    async def call(self, caller: Caller, tool: str, arguments: JsonObject) -> ToolAnswer:
        """Run a tool. If the leader ends during it, the call is repeated with the next one where that is harmless."""
        if tool in _WITH_MESSAGE_ID:
            # With an id of ours, a repeated call is the same message.
            arguments = arguments | {"messageId": arguments.get("messageId") or str(uuid4())}
        while True:
            await self._until_ready()
            if self._broker is not None:
                return await call_tool(self._broker, caller, tool, arguments)
            try:
                return await self._forward(_Request(caller=caller, tool=tool, arguments=arguments))
            except ConnectionRefusedError:
                await asyncio.sleep(RETRY_SECONDS)  # the leader is ending; this call did not reach it
            except LeaderLost as error:
                if tool in _NOT_REPEATED:
                    return error_answer(error)
                await asyncio.sleep(RETRY_SECONDS)

    async def _until_ready(self) -> None:
        """Wait until this process leads or has a leader. Raises what opening the broker raised."""
        assert self._running is not None
        ready = asyncio.ensure_future(self._is_ready.wait())
        try:
            await asyncio.wait({ready, self._running}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if self._running.done():
            self._running.result()

    async def _stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})

    async def _run(self) -> None:
        """Lead if no other process does; otherwise wait for the leader to end, and try again."""
        while True:
            with ExitStack() as stack:
                if self._lock(stack):
                    await self._serve_others()
                    return
            try:
                reader, writer = await self._connect()
            except OSError:
                await asyncio.sleep(RETRY_SECONDS)  # the leader is starting or ending
                continue
            self._is_ready.set()
            try:
                await _wait_for_end(reader)
            finally:
                self._is_ready.clear()
                writer.close()

    def _lock(self, stack: ExitStack) -> bool:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self._folder / "broker.lock", flags, 0o600)
        stack.callback(os.close, descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    # -- the leader

    async def _serve_others(self) -> None:
        async with self._lead() as broker:
            # The server removes the socket at its end, so the path must stay valid until then.
            with self._socket_path() as path:
                await self._listen(broker, path)

    async def _listen(self, broker: Broker, path: str) -> None:
        server = await asyncio.start_unix_server(self._on_connection, path)
        try:
            self._broker = broker
            self._is_ready.set()
            await self._is_closing.wait()
            while self._calls:
                await asyncio.wait(self._calls)
            if self._connections:
                # Another process continues; it would have to report a message that we interrupt as unknown.
                await broker.finish_deliveries()
        finally:
            server.close()
            for writer in list(self._connections):
                writer.close()
            for call in list(self._calls):
                call.cancel()
            await asyncio.gather(*self._calls, return_exceptions=True)

    async def _on_connection(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._connections.add(writer)
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError, msgspec.DecodeError):
                request = msgspec.json.decode(await _read(reader), type=_Request)
                await self._answer(request, reader, writer)
        finally:
            self._connections.discard(writer)
            writer.close()

    async def _answer(self, request: _Request, reader: StreamReader, writer: StreamWriter) -> None:
        """Run a call. If the process that made it ends, the call is cancelled."""
        assert self._broker is not None
        call = asyncio.create_task(call_tool(self._broker, request.caller, request.tool, request.arguments))
        self._calls.add(call)
        gone = asyncio.create_task(_wait_for_end(reader))
        try:
            await asyncio.wait({call, gone}, return_when=asyncio.FIRST_COMPLETED)
            if call.done():
                content = msgspec.json.encode(call.result())
                if len(content) > MAX_BYTES:
                    # The other process would take a longer answer for a lost connection, and repeat the call for ever.
                    problem = (
                        f"the answer has {len(content):,} bytes; between processes it may have {MAX_BYTES:,}"
                    )
                    content = msgspec.json.encode(error_answer(TeamError(problem)))
                await _write(writer, content)
        finally:
            call.cancel()
            gone.cancel()
            await asyncio.gather(call, gone, return_exceptions=True)
            self._calls.discard(call)

    # -- the others

    async def _forward(self, request: _Request) -> ToolAnswer:
        try:
            reader, writer = await self._connect()
        except OSError as error:
            raise ConnectionRefusedError(str(error)) from error
        try:
            await _write(writer, msgspec.json.encode(request))
            return msgspec.json.decode(await _read(reader), type=ToolAnswer)
        except (OSError, asyncio.IncompleteReadError) as error:
            raise LeaderLost(
                "the process that runs the teams ended during this call",
                hint="check with teams_report or teams_threads whether it took effect, then call again",
            ) from error
        finally:
            writer.close()

    async def _connect(self) -> tuple[StreamReader, StreamWriter]:
        with self._socket_path() as path:
            return await asyncio.open_unix_connection(path)

    def _socket_path(self) -> "_SocketPath":
        return _SocketPath(self._folder / "broker.sock")


class _SocketPath:
    """The path of a socket; a long one is shortened, because the system limits it to about 100 bytes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stack = ExitStack()

    def __enter__(self) -> str:
        if len(os.fsencode(self._path)) <= MAX_SOCKET_PATH:
            return str(self._path)
        folder = os.open(self._path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._stack.callback(os.close, folder)
        return f"/proc/self/fd/{folder}/{self._path.name}"

    def __exit__(self, *_: object) -> None:
        self._stack.close()


async def _read(reader: StreamReader) -> bytes:
    size = int.from_bytes(await reader.readexactly(8), "big")
    if size > MAX_BYTES:
        raise ConnectionError("the message is too long")
    return await reader.readexactly(size)


async def _write(writer: StreamWriter, content: bytes) -> None:
    writer.write(len(content).to_bytes(8, "big") + content)
    await writer.drain()


async def _wait_for_end(reader: StreamReader) -> None:
    with suppress(ConnectionError):
        while await reader.read(4096):
            pass
