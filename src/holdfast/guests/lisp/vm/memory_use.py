"""How much a run holds: a walk over everything it can reach."""

import sys

from holdfast.guests.lisp.data import Keyword, LispOutcome, Pair, Symbol
from holdfast.guests.lisp.vm.environment import Closure, Root, Template
from holdfast.guests.lisp.vm.limits import Budget
from holdfast.guests.lisp.vm.registers import Registers
from holdfast.guests.lisp.vm.state import Artifact, Context, Fact, FactStore, Tracker

_OBJECT_BYTES = 64
_INSTRUCTION_BYTES = 120
"""With its share of the tree that it was compiled from."""


def measure(*machines: Registers) -> None:
    """Look at everything reachable and tell the meter. Raises LimitReached."""
    waiting: list[object] = []
    for machine in machines:
        waiting += _roots(machine)
    seen: set[int] = set()
    total = 0
    while waiting:
        item = waiting.pop()
        if item is None or item is True or item is False or id(item) in seen:
            continue
        seen.add(id(item))
        total += _size(item)
        _add_parts(item, waiting)
    machines[0].meter.found_live(total)


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


def _add_parts(item: object, waiting: list[object]) -> None:
    if isinstance(item, Pair):
        waiting += (item.first, item.rest)
    elif isinstance(item, (list, tuple)):
        waiting.extend(item)
    elif isinstance(item, dict):
        waiting.extend(item.keys())
        waiting.extend(item.values())
    elif isinstance(item, Closure):
        waiting += (item.template, item.frame)
    elif isinstance(item, (Symbol, Keyword)):
        waiting.append(item.name)
    elif isinstance(item, LispOutcome):
        waiting.append(item.fields)
    elif isinstance(item, Template):
        waiting.append(item.root)
        waiting.extend(argument for _, argument in item.code or ())
    elif isinstance(item, Root):
        if item.base is not None:
            waiting.extend(cell.value for cell in item.cells.values())
            waiting.extend(item.macros.values())
    elif isinstance(item, Context):
        waiting += (item.root, item.facts, item.budget, item.tracker)
    elif isinstance(item, FactStore):
        waiting.append(item.facts)
    elif isinstance(item, Fact):
        waiting += (item.expression, item.evidence, item.value)
    elif isinstance(item, Artifact):
        waiting += (item.dependencies, item.value)
    elif isinstance(item, Tracker):
        waiting += (item.dependencies, item.outer)
    elif isinstance(item, Budget):
        waiting += (item.limits, item.used, item.outer)
