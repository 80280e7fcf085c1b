"""The protocol between host and worker: typed, length-prefixed frames of limited size over a socket.

The host does not trust a worker: it ends one that sends a frame which is too long or does not parse.
"""

import asyncio
import socket

import msgspec

from holdfast.core import Value
from holdfast.process.stream_reads import read_exactly

MAX_FRAME_BYTES = 288 << 20
MAX_ARGUMENT_BYTES = 120 << 20
"""The arguments of one call, as JSON. More is an error in the guest: wasmtime ends a guest that passes 128 MB at once."""
EXITED = "exited"
"""The reason in `Trapped` for a guest that ended its own interpreter."""
_LENGTH_BYTES = 4
_LONG_TEXT = b"\xdb"
"""MessagePack: a text whose length follows in four bytes."""
_INLINE_BYTES = 256 << 10
"""A larger frame is parsed in a thread, not on the event loop."""


class BrokenFrame(Exception):
    """The other side is gone, or violates the protocol."""


class Setup(Value, tag_field="kind", tag="setup"):
    """The first frame to a worker: what its guest may access."""

    workspace: str
    memory_bytes: int
    file_bytes: int


class Execute(Value, tag_field="kind", tag="execute"):
    """Pass a request to the guest, with these limits."""

    request: str
    memory_bytes: int
    seconds: float
    steps: int
    seed: int
    now_ms: int


class Answered(Value, tag_field="kind", tag="answered"):
    """The answer to the call that the guest waits for."""

    answer: str


class Ready(Value, tag_field="kind", tag="ready"):
    """The worker is confined and its guest is instantiated; `notes` say which restrictions apply."""

    notes: tuple[str, ...]


class Printed(Value, tag_field="kind", tag="showed"):
    """The guest printed something."""

    text: str


class Writing(Value, tag_field="kind", tag="writing"):
    """The guest has file `number` open for writing at `path`; an empty path says that it was closed."""

    number: int
    path: str


class Called(Value, tag_field="kind", tag="called"):
    """The guest requests a call and waits."""

    request: str


class Finished(Value, tag_field="kind", tag="finished"):
    """The guest answered the request, and used `steps` for it."""

    response: str
    steps: int


class Trapped(Value, tag_field="kind", tag="trapped"):
    """The engine stopped the guest. The worker ends after this frame."""

    reason: str
    steps: int


ToWorker = Setup | Execute | Answered
FromWorker = Ready | Printed | Writing | Called | Finished | Trapped

_to_worker: msgspec.msgpack.Decoder[ToWorker] = msgspec.msgpack.Decoder(ToWorker)
_from_worker: msgspec.msgpack.Decoder[FromWorker] = msgspec.msgpack.Decoder(FromWorker)


def pack(frame: ToWorker | FromWorker) -> bytes:
    """The bytes of a frame on the socket."""
    content = msgspec.msgpack.encode(frame)
    if len(content) > MAX_FRAME_BYTES:
        raise BrokenFrame(f"a frame has at most {MAX_FRAME_BYTES} bytes, this one has {len(content)}")
    return len(content).to_bytes(_LENGTH_BYTES, "big") + content


def receive(connection: socket.socket) -> ToWorker:
    """The next frame for a worker; blocks. Raises EOFError if the host is gone."""
    length = int.from_bytes(_exactly(connection, _LENGTH_BYTES), "big")
    return _to_worker.decode(_exactly(connection, length))


def answered(content: bytes) -> tuple[bytes, bytes]:
    """The bytes of an `Answered` frame in two parts, so that a large answer is not copied. The answer is JSON."""
    head = msgspec.msgpack.encode(Answered(answer=""))[:-1] + _LONG_TEXT + len(content).to_bytes(4, "big")
    return (len(head) + len(content)).to_bytes(_LENGTH_BYTES, "big") + head, content


async def read(reader: asyncio.StreamReader, *, max_bytes: int = MAX_FRAME_BYTES) -> FromWorker:
    """The next frame from a worker. Raises BrokenFrame."""
    try:
        length = int.from_bytes(await reader.readexactly(_LENGTH_BYTES), "big")
        if length > max_bytes:
            raise BrokenFrame(f"the worker announced a frame of {length} bytes")
        content = await read_exactly(reader, length)
        if length > _INLINE_BYTES:
            return await asyncio.to_thread(_from_worker.decode, content)
        return _from_worker.decode(content)
    except (asyncio.IncompleteReadError, OSError, ValueError, RecursionError) as problem:
        raise BrokenFrame(f"the worker's connection broke: {type(problem).__name__}") from None


def _exactly(connection: socket.socket, length: int) -> bytes:
    content = bytearray()
    while len(content) < length:
        piece = connection.recv(min(1 << 20, length - len(content)))
        if not piece:
            raise EOFError
        content += piece
    return bytes(content)
