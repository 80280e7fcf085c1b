"""What a Python guest keeps: its state between runs, and how far a run has come when it stops in the middle."""

import msgspec

from holdfast.core import Answer, Json, Value
from holdfast.guests.contract import GuestLimits


class State(Value):
    """A session at rest: the interpreter's dump, and what it cannot tell us about itself."""

    dump: bytes
    names: tuple[str, ...]
    """Identifiers of code that has run; a later run may use them."""
    limits: GuestLimits
    """The limits that the interpreter carries in its dump: it keeps those of its first run."""
    counts_steps: bool = False
    """Whether all code of the session counts its steps; what was defined without counting never does."""


class Progress(msgspec.Struct, kw_only=True):
    """How far a run has come; what a stop in the middle must not forget. The one mutable thing of a run."""

    calls: int = 0
    printed: str = ""
    seconds: float = 0.0
    wall_seconds: float = 0.0
    slept_ms: int = 0
    draws: int = 0
    opened: list[str] = msgspec.field(default_factory=list)
    """Files that were opened for writing and not written yet."""
    answers: list[Answer] = msgspec.field(default_factory=list)
    """Answers to the calls of the step that the run stands at; a step may make several."""


class ParkedRun(Value):
    """A run that waits for an answer."""

    state: State
    """The interpreter in the middle of a step; at rest where `is_complete`."""
    progress: Progress
    is_complete: bool = False
    """The code has ended; only files that it opened are still to be settled."""
    value: Json = None


def encode_record(record: State | ParkedRun) -> bytes:
    """The bytes to be sealed."""
    return msgspec.msgpack.encode(record)


def decode_state(data: bytes) -> State:
    """The inverse of `encode_record`."""
    return msgspec.msgpack.decode(data, type=State)


def decode_parked(data: bytes) -> ParkedRun:
    """The inverse of `encode_record`."""
    return msgspec.msgpack.decode(data, type=ParkedRun)
