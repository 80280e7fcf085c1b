"""What happens when a program cannot go on where it is: back along the continuation to whoever expects that."""

from holdfast.guests.lisp.budgets import BudgetSpent
from holdfast.guests.lisp.data import LispOutcome
from holdfast.guests.lisp.faults import Fault
from holdfast.guests.lisp.natives import BUDGET_END, CATCHER
from holdfast.guests.lisp.registers import Registers

_AFTER_RESULT = 1
"""Where a native piece of code goes on when its result is there already."""
_MAX_TRACE = 8


def locate(machine: Registers, fault: Fault) -> None:
    """Note in a fault where the machine is, and who called."""
    if fault.place is None:
        fault.place = machine.template.places.get(machine.pc - 1)
    if not fault.trace:
        fault.trace = _trace(machine)


def unwind_to_try(machine: Registers, fault: Fault) -> bool:
    """Go back to the innermost `try`, which gives the fault as an error outcome. False where there is none."""
    while machine.continuation:
        _go_back(machine)
        if machine.template is CATCHER:
            _deliver(machine, LispOutcome("error", {"message": fault.message, "code": fault.code}))
            return True
    return False


def unwind_to_budget(machine: Registers, spent: BudgetSpent) -> None:
    """Go back to the `with-budget` that is spent, which gives a nonconverged outcome."""
    while machine.template is not BUDGET_END or machine.frame is None or machine.frame[2] is not spent.budget:
        _go_back(machine)
    iterations = int(spent.budget.used.get("iterations", 0))
    fields = {"value": None, "iterations": iterations, "reason": "budget", "dimension": spent.dimension}
    _deliver(machine, LispOutcome("nonconverged", fields))


def _go_back(machine: Registers) -> None:
    machine.template, machine.pc, machine.frame, machine.context = machine.continuation.pop()


def _deliver(machine: Registers, outcome: LispOutcome) -> None:
    """Leave the outcome as the result of the native code the machine is in; its frame knows how high the stack was."""
    assert machine.frame is not None
    del machine.stack[machine.frame[1] :]
    machine.stack.append(outcome)
    machine.pc = _AFTER_RESULT


def _trace(machine: Registers) -> tuple[str, ...]:
    """Who called, innermost first."""
    lines = []
    for template, pc, _, _ in machine.continuation[: -_MAX_TRACE - 1 : -1]:
        place = template.places.get(pc - 1)
        if place is not None and (template is not machine.template or pc != machine.pc):
            lines.append(f"  called from {template.node.name or 'the top'}, {place}")
    if len(machine.continuation) > _MAX_TRACE:
        lines.append(f"  ... and {len(machine.continuation) - _MAX_TRACE} more")
    return tuple(lines)
