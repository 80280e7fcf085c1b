"""What happens when a program cannot go on where it is: back along the continuation to whoever expects that."""

from collections.abc import Iterator
from itertools import chain, islice

from holdfast.guests.lisp.budgets import BudgetSpent
from holdfast.guests.lisp.data import LispOutcome
from holdfast.guests.lisp.faults import Fault
from holdfast.guests.lisp.natives import BUDGET_END, CATCHER
from holdfast.guests.lisp.place import Place
from holdfast.guests.lisp.registers import Registers

_AFTER_RESULT = 1
"""Where a native piece of code goes on when its result is there already."""
_MAX_SPOTS = 9
_MAX_SEARCH = 1000
"""A recursion may be deep; where its first thousand calls do not tell who called, more will not."""


def locate(machine: Registers, fault: Fault) -> None:
    """Note in a fault where the program is, and who called. Places in the language's own code say nothing to anybody."""
    spots = list(islice(_spots(machine), _MAX_SPOTS))
    if spots and fault.place is None:
        _, fault.place = spots.pop(0)
    if not fault.trace:
        lines = [f"  called from {name or 'the top'}, {place}" for name, place in spots]
        fault.trace = tuple(lines if len(spots) < _MAX_SPOTS - 1 else [*lines, "  ..."])


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


def _spots(machine: Registers) -> Iterator[tuple[str, Place]]:
    """Procedure and place of every call that is under way in the program itself, innermost first."""
    here = (machine.template, machine.pc)
    callers = ((template, pc) for template, pc, _, _ in islice(reversed(machine.continuation), _MAX_SEARCH))
    for number, (template, pc) in enumerate(chain([here], callers)):
        place = template.places.get(pc - 1)
        is_here_again = number == 1 and (template, pc) == here
        if place is not None and template.root.base is not None and not is_here_again:
            yield template.node.name, place
