"""The protocol between host and interpreter: length-prefixed JSON of limited size over a socket.

The host checks the shape of what arrives and relies on nothing else in it, because untrusted code shares the interpreter.
"""

from typing import Literal

import msgspec

from holdfast.core import Json, Value, encode
from holdfast.guests.contract import RunRequest
from holdfast.guests.system.contract import Interpreter
from holdfast.guests.tool_stubs import describe_tool

MAX_CODE_BYTES = 4 << 20
MAX_STATE_BYTES = 16 << 20
"""The saved variables of a session. The guest names those that it had to omit."""
MAX_ARGUMENT_BYTES = 120 << 20
"""The arguments of one call, as JSON. More is an error in the guest."""
_LENGTH_BYTES = 4


class MalformedMessage(Exception):
    """The interpreter sent something that is not a message."""


class InterpreterVariables(Value):
    """The variables as the interpreter pickled them (base64), the version of Python that did, and why others were not kept."""

    state: str = ""
    python: str = ""
    lost: dict[str, str] = msgspec.field(default_factory=dict)


class InterpreterReady(Value, tag_field="kind", tag="ready"):
    """The interpreter has started and takes the code: from now on time counts."""


class CodeCalled(Value, tag_field="kind", tag="called"):
    """The code makes a call and waits for its answer."""

    request: msgspec.Raw


class CodeFinished(Value, tag_field="kind", tag="finished"):
    """The code has ended, according to the interpreter."""

    status: Literal["ok", "error", "limit", "refused"]
    value: Json = None
    error: str = ""
    variables: InterpreterVariables | None = None
    unfinished: tuple[str, ...] = ()
    """Files of the workspace that it had not closed when the code died."""


class InterpreterUnusable(Value, tag_field="kind", tag="unusable"):
    """The interpreter cannot run code."""

    reason: str


FromInterpreter = InterpreterReady | CodeCalled | CodeFinished | InterpreterUnusable
_DECODER: msgspec.json.Decoder[FromInterpreter] = msgspec.json.Decoder(FromInterpreter)


def run_message(request: RunRequest, saved: InterpreterVariables, prelude: tuple[str, ...]) -> bytes:
    """Code to run, with the variables of earlier runs and programs that define more."""
    limits = request.limits
    body = {
        "code": request.code,
        "prelude": list(prelude),
        "variables": {"state": saved.state, "python": saved.python, "lost": dict(saved.lost)},
        "tools": [describe_tool(tool) for tool in request.tools],
        "value_bytes": limits.output_bytes,
        "argument_bytes": min(limits.value_bytes, MAX_ARGUMENT_BYTES),
        "state_bytes": MAX_STATE_BYTES,
        "memory_bytes": limits.memory_bytes,
        "seconds": limits.seconds,
    }
    return framed(encode(body))


def framed(content: bytes) -> bytes:
    """The bytes of a message on the socket."""
    return length_of(content) + content


def length_of(content: bytes) -> bytes:
    """What precedes a message on the socket."""
    return len(content).to_bytes(_LENGTH_BYTES, "big")


async def next_message(interpreter: Interpreter, *, max_bytes: int) -> FromInterpreter:
    """The next message. Raises InterpreterGone or MalformedMessage."""
    length = int.from_bytes(await interpreter.read(_LENGTH_BYTES), "big")
    if length > max_bytes:
        raise MalformedMessage(f"it announced a message of {length} bytes")
    try:
        return _DECODER.decode(await interpreter.read(length))
    except (ValueError, RecursionError) as problem:
        raise MalformedMessage(f"it sent a malformed message: {problem}") from None
