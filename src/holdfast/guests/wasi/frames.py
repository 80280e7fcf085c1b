"""What host and worker say to each other over their socket: length-prefixed, typed, bounded.

The host reads a worker as it would a stranger: a frame that is too long or does not parse ends the worker.
"""

import asyncio
import socket

import msgspec

from holdfast.core import Value

MAX_FRAME_BYTES = 32 << 20
MAX_CALL_BYTES = 4 << 20
"""One call's arguments or result; a bigger one is refused in the guest, with a reason."""
EXITED = "exited"
"""The reason of a guest that ended its own interpreter."""
_LENGTH_BYTES = 4
_INLINE_BYTES = 256 << 10
"""Beyond this a frame is parsed off the event loop."""


class BrokenFrame(Exception):
    """The other side is gone, or does not keep to the protocol."""


class Setup(Value, tag_field="kind", tag="setup"):
    """The first frame to a worker: what its guest may reach."""

    workspace: str
    memory_bytes: int
    file_bytes: int


class Execute(Value, tag_field="kind", tag="execute"):
    """Hand a request to the guest, under these bounds."""

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
    """The worker is confined and its guest stands; `notes` say what is in force."""

    notes: tuple[str, ...]


class Showed(Value, tag_field="kind", tag="showed"):
    """The guest printed something."""

    text: str


class Called(Value, tag_field="kind", tag="called"):
    """The guest asks for a call and waits."""

    request: str


class Finished(Value, tag_field="kind", tag="finished"):
    """The guest answered the request; `steps` is what it used."""

    response: str
    steps: int


class Trapped(Value, tag_field="kind", tag="trapped"):
    """The guest cannot go on: its engine stopped it. The worker ends after this."""

    reason: str
    steps: int


ToWorker = Setup | Execute | Answered
FromWorker = Ready | Showed | Called | Finished | Trapped

_to_worker: msgspec.msgpack.Decoder[ToWorker] = msgspec.msgpack.Decoder(ToWorker)
_from_worker: msgspec.msgpack.Decoder[FromWorker] = msgspec.msgpack.Decoder(FromWorker)


def packed(frame: ToWorker | FromWorker) -> bytes:
    """A frame as it goes over the socket."""
    content = msgspec.msgpack.encode(frame)
    if len(content) > MAX_FRAME_BYTES:
        raise BrokenFrame(f"a frame has at most {MAX_FRAME_BYTES} bytes, this one has {len(content)}")
    return len(content).to_bytes(_LENGTH_BYTES, "big") + content


def receive(connection: socket.socket) -> ToWorker:
    """The next frame for a worker; blocks. EOFError where the host is gone."""
    length = int.from_bytes(_exactly(connection, _LENGTH_BYTES), "big")
    return _to_worker.decode(_exactly(connection, length))


async def read(reader: asyncio.StreamReader) -> FromWorker:
    """The next frame of a worker. Raises BrokenFrame."""
    try:
        length = int.from_bytes(await reader.readexactly(_LENGTH_BYTES), "big")
        if length > MAX_FRAME_BYTES:
            raise BrokenFrame(f"the worker announced a frame of {length} bytes")
        content = await reader.readexactly(length)
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
