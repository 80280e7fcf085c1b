"""The stub's HTTP server: plain asyncio on a free loopback port, closed when its `async with` block ends."""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Self

import msgspec
from tests.support.provider_stub.anthropic import AnthropicWire
from tests.support.provider_stub.chat import ChatWire
from tests.support.provider_stub.faults import BrokenCall, Cut, Endless, Fault, Garbled, Hang, HttpError, Raw
from tests.support.provider_stub.gemini import GeminiWire
from tests.support.provider_stub.responses import ResponsesWire
from tests.support.provider_stub.wire import BROKEN, StreamEvent, Wire

from holdfast.core import Json, JsonObject, ModelMessage, ToolCallPart, Usage, Value
from holdfast.models.contract import Reply
from holdfast.models.scripted import say

_ROUTES: tuple[tuple[str, Wire], ...] = (
    (r"/messages$", AnthropicWire()),
    (r"/chat/completions$", ChatWire()),
    (r"/responses$", ResponsesWire()),
    (r":streamGenerateContent$", GeminiWire()),
)
_USAGE = Usage(input_tokens=100, output_tokens=10)


class StubRequest(Value):
    """A received request. It does not keep the key, only whether it was the right one."""

    wire: str
    body: JsonObject
    has_right_key: bool


class StubServer:
    """Answers the nth request of a conversation with the nth reply.

    Faults precede the reply that they delay: `[HttpError(status=429), "hello"]` fails once and then replies. Faults at the
    end repeat forever. Instead of a script, a function can make the reply from the body of each request. `packet` is the
    size of the packets in bytes; they may split characters and frames.
    """

    def __init__(
        self,
        replies: Sequence[Reply | str | Fault] | Callable[[JsonObject], Reply | Fault],
        *,
        key: str = "stub-key",
        size: int = 6,
        packet: int = 0,
    ) -> None:
        self._respond = replies if callable(replies) else None
        self._steps = [] if callable(replies) else _steps(replies)
        self._key, self._size, self._packet = key, size, packet
        self._served: Counter[int] = Counter()
        self._connections: set[asyncio.Task[None]] = set()
        self.models: tuple[str, ...] = ("stub-model",)
        """The models that it lists."""
        self.requests: list[StubRequest] = []
        self.hanging = asyncio.Event()
        """Set when a request hangs."""
        self.disconnected = asyncio.Event()
        """Set when a client disconnects before its response is complete."""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        """Its address, without the version."""
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}"

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._answer(reader, writer)
            writer.close()
            await writer.wait_closed()
        except (ConnectionError, asyncio.IncompleteReadError):
            self.disconnected.set()
        finally:
            writer.transport.abort()
            self._connections.discard(task)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path, headers, content = await _read_request(reader)
        wire = next((wire for pattern, wire in _ROUTES if re.search(pattern, path)), None)
        if wire is None:
            return await self._send_list(path, headers, writer)
        body = msgspec.json.decode(content, type=dict)
        has_right_key = self._key in _keys(headers)
        self.requests.append(StubRequest(wire=wire.name, body=body, has_right_key=has_right_key))
        step: Reply | Fault
        if has_right_key and self._respond is not None:
            step = self._respond(body)
        elif has_right_key:
            step = self._next_step(wire.count_replies(body))
        else:
            step = HttpError(status=401, message="invalid key")
        named = re.search(r"/models/([^:/]+):", path)
        model = named[1] if named else str(body.get("model", ""))
        return await self._perform(step, wire, model, reader, writer)

    async def _send_list(self, path: str, headers: dict[str, str], writer: asyncio.StreamWriter) -> None:
        """The list of models, as each provider writes it. A local server sends it without a key."""
        if not path.endswith("/models"):
            return await self._send_json(writer, 404, {"error": "no such path"})
        if any(_keys(headers)) and self._key not in _keys(headers):
            return await self._send_json(writer, 401, {"error": "invalid key"})
        if "/v1beta/" in path:
            google: list[Json] = [{"name": f"models/{name}"} for name in self.models]
            google.append({"name": "models/embedder", "supportedGenerationMethods": ["embedContent"]})
            return await self._send_json(writer, 200, {"models": google})
        entries: list[Json] = [{"id": name, "object": "model"} for name in self.models]
        return await self._send_json(writer, 200, {"object": "list", "data": entries})

    def _next_step(self, position: int) -> Reply | Fault:
        steps = self._steps[min(position, len(self._steps) - 1)]
        served = self._served[position]
        self._served[position] += 1
        return steps[min(served, len(steps) - 1)]

    async def _perform(
        self,
        step: Reply | Fault,
        wire: Wire,
        model: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        match step:
            case HttpError():
                extra = {"retry-after": step.retry_after} if step.retry_after is not None else {}
                await self._send_json(writer, step.status, wire.error(step), extra)
            case Reply():
                await self._stream(writer, wire.events(step, model=model, size=self._size))
                writer.write(b"0\r\n\r\n")
                await writer.drain()
            case BrokenCall():
                call = ToolCallPart(id="call_broken", tool=step.tool, arguments={BROKEN: step.arguments})
                broken = Reply(message=ModelMessage(parts=(call,)), usage=_USAGE, finish="tool-calls")
                await self._perform(broken, wire, model, reader, writer)
            case Garbled():
                await self._stream(writer, wire.opening(model=model, text="so far so good"))
                await self._send(writer, b'event: message\ndata: {"no": json\n\n')
                writer.write(b"0\r\n\r\n")
            case Raw():
                await self._stream(writer, ())
                if step.content:
                    await self._send(writer, step.content)
                writer.write(b"0\r\n\r\n")
            case Cut():
                await self._stream(writer, wire.opening(model=model, text=step.text))
                writer.transport.abort()
            case Endless():
                await self._stream(writer, wire.opening(model=model, text=step.text))
                while True:
                    await self._send(writer, _frame(wire.text_event(step.text, model=model)))
            case Hang():
                await self._stream(writer, wire.opening(model=model, text=step.text))
                self.hanging.set()
                await reader.read()  # ends when the client disconnects
                self.disconnected.set()

    async def _stream(self, writer: asyncio.StreamWriter, events: Iterable[StreamEvent]) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
            b"transfer-encoding: chunked\r\nconnection: close\r\n\r\n"
        )
        for event in events:
            await self._send(writer, _frame(event))

    async def _send(self, writer: asyncio.StreamWriter, frame: bytes) -> None:
        size = self._packet or len(frame)
        for start in range(0, len(frame), size):
            packet = frame[start : start + size]
            writer.write(b"%x\r\n%s\r\n" % (len(packet), packet))
            await writer.drain()

    async def _send_json(
        self, writer: asyncio.StreamWriter, status: int, body: JsonObject, extra: dict[str, str] | None = None
    ) -> None:
        content = msgspec.json.encode(body)
        headers = {
            "content-type": "application/json",
            "content-length": str(len(content)),
            "connection": "close",
        }
        lines = [
            f"HTTP/1.1 {status} Stub",
            *(f"{name}: {value}" for name, value in (headers | (extra or {})).items()),
        ]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + content)
        await writer.drain()


def _steps(replies: Sequence[Reply | str | Fault]) -> list[list[Reply | Fault]]:
    steps: list[list[Reply | Fault]] = [[]]
    for entry in replies:
        step = say(entry) if isinstance(entry, str) else entry
        if isinstance(step, Reply) and step.usage == Usage():
            step = Reply(message=step.message, usage=_USAGE, finish=step.finish)
        steps[-1].append(step)
        if isinstance(step, Reply):
            steps.append([])
    return (
        steps
        if steps[-1]
        else [*steps[:-1], [HttpError(status=400, message="the script of the stub has ended")]]
    )


async def _read_request(reader: asyncio.StreamReader) -> tuple[str, dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *rest = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}
    content = await reader.readexactly(int(headers.get("content-length", "0")))
    return first.split(" ")[1].partition("?")[0], headers, content


def _keys(headers: dict[str, str]) -> tuple[str, ...]:
    bearer = headers.get("authorization", "").removeprefix("Bearer ")
    return bearer, headers.get("x-api-key", ""), headers.get("x-goog-api-key", "")


def _frame(event: StreamEvent) -> bytes:
    name, data = event
    text = data if isinstance(data, str) else msgspec.json.encode(data).decode()
    return ((f"event: {name}\n" if name else "") + f"data: {text}\n\n").encode()
