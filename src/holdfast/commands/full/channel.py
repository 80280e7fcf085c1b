"""The host's end of the socket to an init process: requests and replies, descriptors beside them, and the ends of commands."""

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import Callable, Sequence

from holdfast.core import Json, JsonObject, Value
from holdfast.core.errors import CommandError

_MAX_MESSAGE = 1 << 20
_MAX_IN_BAND = 64 << 10
_MAX_DESCRIPTORS = 8


class InitReply(Value):
    """What the init process answered."""

    port: int = 0
    descriptors: tuple[int, ...] = ()


class Ended(Value):
    """How a command ended, as its supervisor reported it. A negative code is a signal."""

    run: int
    code: int
    left: int = 0
    cpu_seconds: float = 0.0
    memory_mb: int = 0
    stopped_because: str = ""


class Channel:
    """Sends requests to an init process and completes their futures as the replies arrive."""

    def __init__(
        self,
        connection: socket.socket,
        *,
        on_ended: Callable[[Ended], None],
        on_ports: Callable[[dict[int, tuple[int, ...]]], None],
        on_gone: Callable[[], None],
    ) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._on_ended = on_ended
        self._on_ports = on_ports
        self._on_gone = on_gone
        self._waiting: dict[int, asyncio.Future[InitReply]] = {}
        self._next_id = 0
        self._is_open = True
        self._first: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().add_reader(connection, self._read)

    @property
    def is_open(self) -> bool:
        """Whether the init process still answers."""
        return self._is_open

    async def configure(self, configuration: JsonObject) -> None:
        """Send the configuration and wait until the sandbox is ready. Raises CommandError."""
        await self._send(configuration, ())
        await self._first

    def new_id(self) -> int:
        """A number for the next request."""
        self._next_id += 1
        return self._next_id

    async def ask(
        self, op: str, *, descriptors: Sequence[int] = (), id: int | None = None, **fields: Json
    ) -> InitReply:
        """Send a request and wait for its reply. Raises CommandError."""
        if not self._is_open:
            raise _gone()
        number = self.new_id() if id is None else id
        future: asyncio.Future[InitReply] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            await self._send({"op": op, "id": number, **fields}, descriptors)
            return await future
        finally:
            self._waiting.pop(number, None)

    def close(self) -> None:
        """Close the socket, which ends the init process and everything in the sandbox."""
        if self._is_open:
            self._is_open = False
            asyncio.get_running_loop().remove_reader(self._connection)
            self._connection.close()
            self._fail_all(_gone())
            self._on_gone()

    async def _send(self, message: JsonObject, descriptors: Sequence[int]) -> None:
        # Not msgspec: names of files that are not UTF-8 travel as lone surrogates.
        data = json.dumps(message).encode()
        body = -1
        if len(data) > _MAX_IN_BAND:
            body = os.memfd_create("request", os.MFD_CLOEXEC)
            os.write(body, data)
            os.lseek(body, 0, os.SEEK_SET)
            data, descriptors = b'{"large": true}', (body, *descriptors)
        try:
            while True:
                try:
                    socket.send_fds(self._connection, [data], list(descriptors))
                    return
                except BlockingIOError:
                    await _writable(self._connection)
                except OSError as error:
                    raise _gone() from error
        finally:
            if body >= 0:
                os.close(body)

    def _read(self) -> None:
        while self._is_open:
            try:
                data, descriptors, _, _ = socket.recv_fds(self._connection, _MAX_MESSAGE, _MAX_DESCRIPTORS)
            except BlockingIOError:
                return
            except OSError:
                data, descriptors = b"", []
            if not data:
                self.close()
                return
            self._handle(json.loads(data), tuple(descriptors))

    def _handle(self, message: dict[str, object], descriptors: tuple[int, ...]) -> None:
        match message:
            case {"ended": int(run), "code": int(code)}:
                self._on_ended(_ended(run, code, message))
            case {"ports": list(found)}:
                self._on_ports(_ports(found))
            case {"ready": True}:
                if not self._first.done():
                    self._first.set_result(None)
            case {"re": int(number)}:
                future = self._waiting.get(number)
                if future is None or future.done():
                    for descriptor in descriptors:
                        os.close(descriptor)
                elif "error" in message:
                    future.set_exception(CommandError(f"the sandbox refused: {message['error']}"))
                else:
                    port = message.get("port")
                    future.set_result(
                        InitReply(port=port if isinstance(port, int) else 0, descriptors=descriptors)
                    )
            case {"error": str(reason)}:
                self._fail_all(CommandError(f"the sandbox cannot start: {reason}", hint="holdfast doctor"))
            case _:
                pass

    def _fail_all(self, error: CommandError) -> None:
        if not self._first.done():
            self._first.set_exception(error)
            self._first.exception()  # nobody may wait for it
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(error)


def _ended(run: int, code: int, message: dict[str, object]) -> Ended:
    left, cpu, memory = message.get("left"), message.get("cpu_seconds"), message.get("memory_mb")
    return Ended(
        run=run,
        code=code,
        left=left if isinstance(left, int) else 0,
        cpu_seconds=float(cpu) if isinstance(cpu, int | float) else 0.0,
        memory_mb=memory if isinstance(memory, int) else 0,
        stopped_because=str(message.get("stopped_because", "")),
    )


def _ports(found: list[object]) -> dict[int, tuple[int, ...]]:
    return {
        run: tuple(port for port in ports if isinstance(port, int))
        for each in found
        if isinstance(each, list)
        for run, ports in [each]
        if isinstance(run, int) and isinstance(ports, list)
    }


async def _writable(connection: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_writer(connection, ready.set)
    try:
        await ready.wait()
    finally:
        with contextlib.suppress(OSError, ValueError):
            loop.remove_writer(connection)


def _gone() -> CommandError:
    return CommandError("the sandbox has ended", hint="run the command again: a new sandbox opens")
