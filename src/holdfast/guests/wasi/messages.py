"""What is asked of the Python inside the component, and what it claims in return.

Its claims are checked for their shape and believed about nothing else: untrusted code shares its interpreter.
"""

from typing import Literal, TypeVar

import msgspec

import holdfast.guests.wasi.frames as frames
from holdfast.core import Json, Tool, Value, encode
from holdfast.guests.contract import GuestLimits, RunRequest
from holdfast.guests.tool_stubs import parameters, python_name

MAX_CODE_BYTES = 4 << 20
MAX_STATE_BYTES = 16 << 20
"""More variables than this are not kept; the guest names what it left out."""
STATE_LIMITS = GuestLimits(seconds=10, wall_seconds=10, calls=0)
"""Saving and loading variables is our work, but on objects that untrusted code made."""
_NO_STEP_LIMIT = 1 << 62


class Verdict(Value):
    """How the guest says its run ended."""

    status: Literal["ok", "error", "limit", "refused"]
    value: Json = None
    error: str = ""


class Variables(Value):
    """The variables as the guest pickled them (base64), and the names it could not keep with the reason of each."""

    state: str
    lost: dict[str, str]


Claim = TypeVar("Claim", Verdict, Variables)


class Malformed(Exception):
    """A claim that has not the shape it must have."""


def verdict(response: str) -> Verdict:
    """The guest's claim about a run. Raises Malformed."""
    return _decoded(response.encode(), Verdict)


def variables(response: bytes) -> Variables:
    """The guest's variables. Raises Malformed."""
    return _decoded(response, Variables)


def run(request: RunRequest, *, is_fresh: bool) -> frames.Execute:
    """Run code under the limits of its request."""
    limits = request.limits
    told = {
        "do": "run",
        "code": request.code,
        "is_fresh": is_fresh,
        "output_bytes": limits.output_bytes,
        "tools": [_named(tool) for tool in request.tools],
    }
    return frames.Execute(
        request=encode(told).decode(),
        memory_bytes=limits.memory_bytes,
        seconds=limits.seconds,
        steps=_NO_STEP_LIMIT if limits.steps is None else limits.steps,
        seed=request.seed,
        now_ms=request.now_ms,
    )


def save(*, memory_bytes: int) -> frames.Execute:
    """Pickle the variables."""
    return _own({"do": "save", "most_bytes": MAX_STATE_BYTES}, memory_bytes)


def load(kept: Variables, *, memory_bytes: int) -> frames.Execute:
    """Take up variables."""
    return _own({"do": "load", "state": kept.state, "lost": dict(kept.lost)}, memory_bytes)


def _own(told: Json, memory_bytes: int) -> frames.Execute:
    return frames.Execute(
        request=encode(told).decode(),
        memory_bytes=memory_bytes,
        seconds=STATE_LIMITS.seconds,
        steps=_NO_STEP_LIMIT,
        seed=0,
        now_ms=0,
    )


def _named(tool: Tool) -> Json:
    """A tool under the names that its stubs have."""
    return {
        "operation": tool.name,
        "group": python_name(tool.group),
        "verb": tool.verb and python_name(tool.verb),
        "parameters": [[parameter.python, parameter.name] for parameter in parameters(tool)],
        "description": tool.description,
    }


def _decoded(content: bytes, kind: type[Claim]) -> Claim:
    try:
        return msgspec.json.decode(content, type=kind)
    except (ValueError, RecursionError) as problem:  # no JSON, or no UTF-8 in it
        raise Malformed(f"the guest answered with something else than was asked: {problem}") from None
