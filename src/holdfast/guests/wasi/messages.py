"""The JSON requests to the package `inside` in the component, and its replies.

The host checks only the shape of a reply and relies on nothing else in it, because untrusted code shares the interpreter.
"""

from typing import Literal, TypeVar

import msgspec

import holdfast.guests.wasi.frames as frames
from holdfast.core import Json, Value, encode
from holdfast.guests.contract import GuestLimits, RunRequest
from holdfast.guests.tool_stubs import describe_tool

MAX_CODE_BYTES = 4 << 20
MAX_STATE_BYTES = 16 << 20
"""The saved variables of a session. The guest names those that it had to omit."""
STATE_LIMITS = GuestLimits(seconds=10, wall_seconds=10, calls=0)
"""For saving and loading variables: our code does it, but on objects of untrusted code."""
_NO_STEP_LIMIT = 1 << 62


class RunReply(Value):
    """How a run ended, according to the guest."""

    status: Literal["ok", "error", "limit", "refused"]
    value: Json = None
    error: str = ""


class SavedVariables(Value):
    """The variables as the guest pickled them (base64), and why each of the others could not be kept."""

    state: str
    lost: dict[str, str]


Reply = TypeVar("Reply", RunReply, SavedVariables)


class MalformedWorkerReply(Exception):
    """A reply does not have the required shape."""


def parse_run(response: str) -> RunReply:
    """The reply to a run. Raises MalformedReply."""
    return _decode(response.encode(), RunReply)


def parse_variables(response: bytes) -> SavedVariables:
    """The reply to a request to save. Raises MalformedReply."""
    return _decode(response, SavedVariables)


def run(request: RunRequest, *, is_fresh: bool) -> frames.Execute:
    """A request to run code with its limits."""
    limits = request.limits
    body = {
        "do": "run",
        "code": request.code,
        "is_fresh": is_fresh,
        "output_bytes": limits.output_bytes,
        "argument_bytes": min(limits.value_bytes, frames.MAX_ARGUMENT_BYTES),
        "tools": [describe_tool(tool) for tool in request.tools],
    }
    return frames.Execute(
        request=encode(body).decode(),
        memory_bytes=limits.memory_bytes,
        seconds=limits.seconds,
        steps=_NO_STEP_LIMIT if limits.steps is None else limits.steps,
        seed=request.seed,
        now_ms=request.now_ms,
    )


def save(*, memory_bytes: int) -> frames.Execute:
    """A request to pickle the variables."""
    return _state_request({"do": "save", "max_bytes": MAX_STATE_BYTES}, memory_bytes)


def load(saved: SavedVariables, *, memory_bytes: int) -> frames.Execute:
    """A request to load saved variables."""
    return _state_request({"do": "load", "state": saved.state, "lost": dict(saved.lost)}, memory_bytes)


def _state_request(body: Json, memory_bytes: int) -> frames.Execute:
    return frames.Execute(
        request=encode(body).decode(),
        memory_bytes=memory_bytes,
        seconds=STATE_LIMITS.seconds,
        steps=_NO_STEP_LIMIT,
        seed=0,
        now_ms=0,
    )


def _decode(content: bytes, kind: type[Reply]) -> Reply:
    try:
        return msgspec.json.decode(content, type=kind)
    except (ValueError, RecursionError) as problem:  # not JSON, or not UTF-8
        raise MalformedWorkerReply(f"the guest sent a malformed reply: {problem}") from None
