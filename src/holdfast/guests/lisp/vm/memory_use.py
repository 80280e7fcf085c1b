"""Memory measurement: a traversal of everything that a run can reach."""

import sys

from holdfast.guests.lisp.data import Keyword, LispOutcome, Pair, Symbol
from holdfast.guests.lisp.errors import LimitReached
from holdfast.guests.lisp.long_text import LongText
from holdfast.guests.lisp.vm.environment import Closure, Root, Template
from holdfast.guests.lisp.vm.limits import LONG_TEXT_CHARACTERS, MAX_SAVED_TEXT_BYTES, ScopedBudget
from holdfast.guests.lisp.vm.registers import Registers
from holdfast.guests.lisp.vm.state import Artifact, Context, Fact, FactStore, Tracker

_OBJECT_BYTES = 64
_INSTRUCTION_BYTES = 120
"""Including its share of the syntax tree."""


def measure(*machines: Registers) -> None:
    """Measure everything reachable and record it in the meter. Raises LimitReached."""
    pending: list[object] = []
    for machine in machines:
        pending += _roots(machine)
    seen: set[int] = set()
    total = text = 0
    while pending:
        item = pending.pop()
        if item is None or item is True or item is False or id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, str) and len(item) > LONG_TEXT_CHARACTERS:
            text += sys.getsizeof(item)
            continue
        if isinstance(item, LongText):
            text += len(item.content)
            continue
        total += _size(item)
        _add_parts(item, pending)
    machines[0].meter.record_live_bytes(total, text=text)


def check_saved_text(machine: Registers) -> None:
    """Raise LimitReached if the long texts that a program keeps are too large to save."""
    if not machine.meter.may_exceed_saved_text:
        return
    measure(machine)
    if machine.meter.may_exceed_saved_text:
        raise LimitReached(
            "memory_bytes",
            f"the program keeps {machine.meter.text_bytes:,} bytes of long texts, and {MAX_SAVED_TEXT_BYTES:,} can be saved. Its "
            "variables are as they were before it; calls it made are not undone",
        )


def _roots(machine: Registers) -> list[object]:
    state = machine.state
    control = list(machine.control[1]) if machine.control is not None else []
    return [
        machine.stack,
        machine.continuation,
        machine.frame,
        machine.template,
        machine.context,
        machine.prepared,
        machine.forms,
        control,
        state.root,
        state.facts,
        *(artifact for _, artifact in state.artifacts.entries()),
    ]


def _size(item: object) -> int:
    if isinstance(item, (str, int, float, list, tuple, dict)):
        return sys.getsizeof(item)
    if isinstance(item, Template):
        return _OBJECT_BYTES + _INSTRUCTION_BYTES * len(item.code or ())
    return _OBJECT_BYTES


def _add_parts(item: object, pending: list[object]) -> None:
    if isinstance(item, Pair):
        pending += (item.first, item.rest)
    elif isinstance(item, (list, tuple)):
        pending.extend(item)
    elif isinstance(item, dict):
        pending.extend(item.keys())
        pending.extend(item.values())
    elif isinstance(item, Closure):
        pending += (item.template, item.frame)
    elif isinstance(item, (Symbol, Keyword)):
        pending.append(item.name)
    elif isinstance(item, LispOutcome):
        pending.append(item.fields)
    elif isinstance(item, Template):
        pending.append(item.root)
        pending.extend(argument for _, argument in item.code or ())
    elif isinstance(item, Root):
        if item.base is not None:
            pending.extend(cell.value for cell in item.cells.values())
            pending.extend(item.macros.values())
    elif isinstance(item, Context):
        pending += (item.root, item.facts, item.budget, item.tracker)
    elif isinstance(item, FactStore):
        pending.append(item.facts)
    elif isinstance(item, Fact):
        pending += (item.expression, item.evidence, item.value)
    elif isinstance(item, Artifact):
        pending += (item.dependencies, item.value)
    elif isinstance(item, Tracker):
        pending += (item.dependencies, item.outer)
    elif isinstance(item, ScopedBudget):
        pending += (item.limits, item.used, item.outer)
