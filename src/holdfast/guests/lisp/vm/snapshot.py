"""A machine as an image and back: between two steps everything it knows is in its fields, so these are all there is."""

from typing import Any

from holdfast.guests.lisp.vm.compiler import NATIVE, VERSION, compile_template
from holdfast.guests.lisp.vm.environment import Root
from holdfast.guests.lisp.vm.image import BadImage, decode_image, encode_image
from holdfast.guests.lisp.vm.machine import Machine
from holdfast.guests.lisp.vm.registers import Call
from holdfast.guests.lisp.vm.state import State

_REGISTERS = (
    "stack",
    "continuation",
    "context",
    "template",
    "pc",
    "frame",
    "control",
    "forms",
    "prepared",
    "value",
    "random_state",
    "now_ms",
)
_COUNTS = ("steps", "calls", "seconds", "wall_seconds", "output", "output_bytes")


def save_state(state: State) -> bytes:
    """What lasts from run to run."""
    return encode_image(_state_parts(state), natives=NATIVE)


def load_state(image: bytes, library: Root) -> State:
    """A state that was saved, alone or with a machine. Raises BadImage."""
    return _state(decode_image(image, library=library, natives=NATIVE))


def save_machine(machine: Machine) -> bytes:
    """A machine between two steps, with its state."""
    waiting = machine.waiting
    parts = _state_parts(machine.state) | {
        "version": VERSION,
        "registers": {name: getattr(machine, name) for name in _REGISTERS},
        "counts": {name: getattr(machine.meter, name) for name in _COUNTS},
        "permitted": sorted(machine.permitted),
        "waiting": None if waiting is None else [waiting.operation, waiting.arguments],
    }
    return encode_image(parts, natives=NATIVE)


def load_machine(machine: Machine, image: bytes, library: Root) -> None:
    """Let a fresh machine be the one that was saved, state included. Raises BadImage."""
    parts = decode_image(image, library=library, natives=NATIVE)
    if not isinstance(parts, dict) or parts.get("version") != VERSION:
        raise BadImage("it is not of a run that waits, or was made by another version of the machine")
    machine.state = _state(parts)
    try:
        for name in _REGISTERS:
            setattr(machine, name, parts["registers"][name])
        for name in _COUNTS:
            setattr(machine.meter, name, parts["counts"][name])
        machine.permitted = set(parts["permitted"])
        machine.waiting = None if parts["waiting"] is None else Call(*parts["waiting"])
        for template, *_ in machine.continuation:
            # Code that is returned to has run before; the machine relies on its being compiled.
            if template.code is None:
                compile_template(template)
    except (KeyError, TypeError) as error:
        raise BadImage("a part of it is missing") from error


def _state_parts(state: State) -> dict[str, object]:
    return {"root": state.root, "facts": state.facts, "artifacts": state.artifacts}


def _state(parts: Any) -> State:
    try:
        return State(parts["root"], parts["facts"], parts["artifacts"])
    except (KeyError, TypeError) as error:
        raise BadImage("a part of it is missing") from error
