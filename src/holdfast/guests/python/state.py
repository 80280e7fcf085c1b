"""What a Python guest saves: its variables between runs, the progress of a parked run, and plain data for another engine.

`PythonState` and `ParkedRun` are on disk, signed. The export for another engine is written by guest code as JSON: values of other
kinds never leave the interpreter, because its version 1.4.0 crashes when it returns an instance of a class of the guest.
"""

import builtins
import keyword
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from holdfast.core import Answer, Json, JsonObject, Refused, Value
from holdfast.guests.contract import GuestLimits, Run, RunRequest

_MAX_NAMES = 2_000
_MAX_CHARACTERS = 12_000_000
"""The JSON text of all variables together."""
_MAX_CHARACTERS_OF_ONE = 1_500_000
"""The JSON text of one variable. It has to fit into the source of a program, where each quote takes two characters."""

RESET_STEP_COUNT = "__step_left__ = __step_iter__(__step_range__(1, 1 << 62))"
"""Code that gives the step counter of a version 0.1 session more steps than it can use."""


class PythonState(Value):
    """The variables of a session between runs: the interpreter's dump, and what the dump does not say about itself."""

    dump: bytes
    names: tuple[str, ...]
    """Identifiers of code that has run; a later run may use them."""
    limits: GuestLimits
    """The limits inside the dump: the interpreter keeps those of its first run."""
    file_prelude: int = 0
    """The version of the file prelude that the interpreter has loaded; 0 for none."""
    has_open_files: bool = False
    """Whether a file that an earlier run opened for writing is still open."""
    counts_steps: bool = False
    """Whether functions of the session count their steps, as version 0.1 made them do under a step limit."""
    feeds: int = -1
    """How many pieces of code the interpreter has been given, by which it names them; -1 if that is not known."""


class HeldFile(Value):
    """Content of a file that the host holds back, because more may follow."""

    path: str = ""
    operation: str = "world.write"
    parts: list[bytes] = msgspec.field(default_factory=list)
    when: Literal["never", "touch", "name", "tool", "any"] = "any"
    """What makes the host write it before the run ends: nothing; an operation on the file; also a tool whose arguments name it, or which
    runs programs; any tool; any operation."""
    id: int = 0
    """The file object; 0 for one of the interpreter's own."""
    is_written: bool = False
    """Whether its parts were written while the file was still open, so that the file adds only what follows."""
    more: list[bytes] = msgspec.field(default_factory=list)
    """What follows the parts and is not written."""

    is_text: bool = True
    """Whether all content is text, which a call then shows as it is."""

    @property
    def unwritten(self) -> bytes:
        """The content that is not written."""
        return b"".join(self.more if self.is_written else [*self.parts, *self.more])


class RunProgress(msgspec.Struct, kw_only=True):
    """What a run has used and done so far, which a parked run must remember. The only mutable value of a run."""

    calls: int = 0
    printed: str = ""
    seconds: float = 0.0
    wall_seconds: float = 0.0
    slept_ms: int = 0
    draws: int = 0
    opened: list[str] = msgspec.field(default_factory=list)
    """Files that version 0.1 opened for writing and has not written."""
    held: list[HeldFile] = msgspec.field(default_factory=list)
    """Content that is held back."""
    has_opened: bool = False
    """Whether the run opened a file for writing with `open`."""
    answers: list[Answer] = msgspec.field(default_factory=list)
    """Answers to the calls of the current stop; one stop may make several calls."""
    code_feed: int = -1
    """The number under which the interpreter knows the code of this run; -1 if it runs other code than was written."""
    has_insertions: bool = False
    """Whether that code has inserted calls (`file_insertions`)."""


class ParkedRun(Value):
    """A run that waits for an answer."""

    state: PythonState
    """The interpreter at the stop that waits, or between runs if `is_complete`."""
    progress: RunProgress
    is_complete: bool = False
    """Whether the code has ended, and only files that it opened remain to be written."""
    is_ending: bool = False
    """Whether the code has ended, and the interpreter is writing the files that it left open."""
    value: Json = None


class ExportedVariables(Value):
    """The plain data among the variables, and the names of the variables that are something else."""

    variables: JsonObject = msgspec.field(default_factory=dict)
    omitted: tuple[str, ...] = ()


def encode_record(record: PythonState | ParkedRun) -> bytes:
    """The bytes to be signed."""
    return msgspec.msgpack.encode(record)


def decode_state(data: bytes) -> PythonState:
    """The inverse of `encode_record`."""
    return msgspec.msgpack.decode(data, type=PythonState)


def decode_parked(data: bytes) -> ParkedRun:
    """The inverse of `encode_record`."""
    return msgspec.msgpack.decode(data, type=ParkedRun)


def export_request(names: Iterable[str]) -> RunRequest:
    """Code whose value is the JSON text of each variable that has one, and the names of the others."""
    chosen = [name for name in names if not keyword.iskeyword(name) and not name.startswith("_")][:_MAX_NAMES]
    lines = ["import json as _json", f"_written, _left, _room = {{}}, [], {_MAX_CHARACTERS}"]
    for name in chosen:
        lines.append(
            f"try:\n    _text = _json.dumps({name})\n"
            "except NameError:\n    _text = None\n"
            "except BaseException:\n    _text = ''\n"
            f"if _text and len(_text) <= min(_room, {_MAX_CHARACTERS_OF_ONE}):\n"
            f"    _written[{name!r}] = _text\n    _room -= len(_text)\n"
            f"elif _text is not None:\n    _left.append({name!r})"
        )
    code = "\n".join([*lines, "[_written, _left]"])
    return RunRequest(code=code, limits=GuestLimits(output_bytes=4 * _MAX_CHARACTERS))


def read_export(run: Run) -> ExportedVariables:
    """The variables from a run of `export_request`; none if it did not succeed."""
    match run.value if run.status == "ok" else None:
        case [dict() as written, list() as left]:
            pass
        case _:
            return ExportedVariables()
    omitted = [name for name in left if isinstance(name, str) and not hasattr(builtins, name)]
    variables: JsonObject = {}
    for name, text in written.items():
        try:
            variables[name] = msgspec.json.decode(str(text))
        except msgspec.DecodeError:  # Python writes NaN and Infinity, which JSON does not have
            omitted.append(name)
    return ExportedVariables(variables=variables, omitted=tuple(omitted))


def import_programs(variables: JsonObject) -> Iterator[str]:
    """Programs that define these variables in CPython, each short enough to run."""
    batch: dict[str, Json] = {}
    size = 0
    for name, value in variables.items():
        length = len(msgspec.json.encode(value))
        if batch and size + length > _MAX_CHARACTERS_OF_ONE:
            yield _import_program(batch)
            batch, size = {}, 0
        batch[name] = value
        size += length
    if batch:
        yield _import_program(batch)


async def refuse_all(operation: str, _arguments: JsonObject) -> Answer:
    """Refuse every call of an export or import; its code makes none."""
    return Refused(
        reason=f"{operation} cannot be called while variables move to another engine", rule="handover"
    )


def _import_program(variables: JsonObject) -> str:
    text = msgspec.json.encode(variables).decode()
    return f"import json as _json\nglobals().update(_json.loads({text!r}))"
