"""Snapshots of a machine. Between two steps its registers are its complete state, so an image of them is enough."""

from typing import Any

from holdfast.guests.lisp.vm.compiler import NATIVE, VERSION, compile_template
from holdfast.guests.lisp.vm.environment import Root
from holdfast.guests.lisp.vm.image import BadImage, decode_image, encode_image
from holdfast.guests.lisp.vm.machine import Machine
from holdfast.guests.lisp.vm.registers import HostCall
from holdfast.guests.lisp.vm.state import LispState

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


def save_state(state: LispState) -> bytes:
    """Save the state that persists between runs."""
    return encode_image(_state_parts(state), natives=NATIVE)


def load_state(image: bytes, library: Root) -> LispState:
    """Load a state that was saved alone or with a machine. Raises BadImage."""
    return _state(decode_image(image, library=library, natives=NATIVE))


def save_machine(machine: Machine) -> bytes:
    """Save a machine between two steps, with its state."""
    call = machine.pending_call
    parts = _state_parts(machine.state) | {
        "version": VERSION,
        "registers": {name: getattr(machine, name) for name in _REGISTERS},
        "counts": {name: getattr(machine.meter, name) for name in _COUNTS},
        "permitted": sorted(machine.permitted),
        "waiting": None if call is None else [call.operation, call.arguments, call.is_base64],
    }
    return encode_image(parts, natives=NATIVE)


def load_machine(machine: Machine, image: bytes, library: Root) -> None:
    """Load a saved machine and its state into a new machine. Raises BadImage."""
    parts = decode_image(image, library=library, natives=NATIVE)
    if not isinstance(parts, dict) or parts.get("version") != VERSION:
        raise BadImage("it does not contain a parked run, or another version of the machine made it")
    machine.state = _state(parts)
    try:
        for name in _REGISTERS:
            setattr(machine, name, parts["registers"][name])
        for name in _COUNTS:
            setattr(machine.meter, name, parts["counts"][name])
        machine.permitted = set(parts["permitted"])
        machine.pending_call = None if parts["waiting"] is None else HostCall(*parts["waiting"])
        for template, *_ in machine.continuation:
            # Code to return to has run before, so the interpreter expects it to be compiled.
            if template.code is None:
                compile_template(template)
    except (KeyError, TypeError) as error:
        raise BadImage("a part is missing") from error


def _state_parts(state: LispState) -> dict[str, object]:
    return {"root": state.root, "facts": state.facts, "artifacts": state.artifacts}


def _state(parts: Any) -> LispState:
    try:
        return LispState(parts["root"], parts["facts"], parts["artifacts"])
    except (KeyError, TypeError) as error:
        raise BadImage("a part is missing") from error
