"""Macros at work: procedures that turn a form into another, run while the form is expanded.

A macro cannot ask the host for anything, so there is never something to wait for in the middle of an expansion.
"""

from typing import TYPE_CHECKING

from holdfast.guests.lisp.context import Context
from holdfast.guests.lisp.data import Closure, Datum
from holdfast.guests.lisp.faults import Fault
from holdfast.guests.lisp.memory import measure
from holdfast.guests.lisp.natives import HALTED

if TYPE_CHECKING:
    from holdfast.guests.lisp.machine import Machine

MAX_STEPS = 200_000
"""Of all macros in one form: expanding is not interruptible, and this takes some hundredths of a second."""
_STEPS_PER_USE = 100
"""What each use costs beside the macro's own steps, so that one that expands to itself comes to an end."""


class Macros:
    """Runs the macros of one form, within one allowance of steps."""

    def __init__(self, machine: "Machine") -> None:
        self._machine = machine
        self._left = MAX_STEPS

    def __call__(self, macro: Closure, arguments: list[Datum]) -> Datum:
        """What a use of the macro expands to."""
        machine = self._machine
        inner = machine.pure_twin()
        inner.continuation.append((HALTED, 0, None, Context(machine.context.root, machine.context.facts)))
        inner.enter(macro, arguments)
        self._left -= _STEPS_PER_USE
        while self._left > 0:
            before = machine.meter.steps
            progress = inner.advance(self._left)
            self._left -= machine.meter.steps - before
            if progress == "done":
                return inner.value
            if progress == "crowded":
                for _ in measure(machine, inner):
                    pass
        raise Fault("macro-error", f"the macros of one form took more than {MAX_STEPS} steps")
