"""The plain data among a guest's variables, written out by the guest itself as JSON.

Values of other kinds never cross: the interpreter of version 1.4.0 dies when it hands out an instance of a guest's class.

What a Python guest keeps: its state between runs, and how far a run has come when it stops in the middle.
"""

import builtins
import keyword
from collections.abc import Iterable, Iterator

import msgspec

from holdfast.core import Answer, Json, JsonObject, Refused, Value
from holdfast.guests.contract import GuestLimits, Run, RunRequest


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


_MAX_NAMES = 2_000
_MAX_CHARACTERS = 12_000_000
"""Of all variables together, as JSON."""
_MAX_OF_ONE = 1_500_000
"""Of one of them: it has to fit into the text of a program, where each quote takes two characters."""


class ExportedVariables(Value):
    """What goes along to another engine, and the names of what stays behind."""

    variables: JsonObject = msgspec.field(default_factory=dict)
    left: tuple[str, ...] = ()


def handover_request(names: Iterable[str]) -> RunRequest:
    """Code whose value is the JSON text of each variable that has one, and the names of the others."""
    chosen = [name for name in names if not keyword.iskeyword(name) and not name.startswith("_")][:_MAX_NAMES]
    lines = ["import json as _json", f"_written, _left, _room = {{}}, [], {_MAX_CHARACTERS}"]
    for name in chosen:
        lines.append(
            f"try:\n    _text = _json.dumps({name})\n"
            "except NameError:\n    _text = None\n"
            "except BaseException:\n    _text = ''\n"
            f"if _text and len(_text) <= min(_room, {_MAX_OF_ONE}):\n"
            f"    _written[{name!r}] = _text\n    _room -= len(_text)\n"
            f"elif _text is not None:\n    _left.append({name!r})"
        )
    code = "\n".join([*lines, "[_written, _left]"])
    return RunRequest(code=code, limits=GuestLimits(output_bytes=4 * _MAX_CHARACTERS))


def read_handover(ended: Run) -> ExportedVariables:
    """The variables, from the value of the request above; none where it was not to be had."""
    match ended.value if ended.status == "ok" else None:
        case [dict() as written, list() as left]:
            pass
        case _:
            return ExportedVariables()
    names = [name for name in left if isinstance(name, str) and not hasattr(builtins, name)]
    variables: JsonObject = {}
    for name, text in written.items():
        try:
            variables[name] = msgspec.json.decode(str(text))
        except msgspec.DecodeError:  # Python writes numbers that are none, which JSON does not have
            names.append(name)
    return ExportedVariables(variables=variables, left=tuple(names))


def taking_over(variables: JsonObject) -> Iterator[str]:
    """Programs that define these variables in CPython, each short enough to be one."""
    batch: dict[str, Json] = {}
    size = 0
    for name, value in variables.items():
        length = len(msgspec.json.encode(value))
        if batch and size + length > _MAX_OF_ONE:
            yield _defining(batch)
            batch, size = {}, 0
        batch[name] = value
        size += length
    if batch:
        yield _defining(batch)


def _defining(variables: JsonObject) -> str:
    text = msgspec.json.encode(variables).decode()
    return f"import json as _json\nglobals().update(_json.loads({text!r}))"


async def refuse_all(operation: str, _arguments: JsonObject) -> Answer:
    """The code above calls nothing."""
    return Refused(reason=f"{operation} is not for taking over variables", rule="handover")
