"""Asking a model from a program: no more tokens are asked for than the budgets around it leave.

What the reply cost comes with the host's answer, and is charged there like the cost of any call.
"""

from holdfast.guests.lisp.data import Datum
from holdfast.guests.lisp.lists import gather
from holdfast.guests.lisp.operations import API, name_arguments
from holdfast.guests.lisp.registers import Control, Registers
from holdfast.guests.lisp.texts import text


def _ask(machine: Registers, arguments: list[Datum]) -> None:
    operation = API[text(arguments[0])]
    named = dict(name_arguments(operation.name, operation.positions, gather(machine, arguments[1])))
    budget = machine.context.budget
    if budget is not None:
        budget.check("tokens")
        budget.check("cost")
        room, wanted = budget.room("tokens"), named.get("max_tokens")
        if room is not None:
            named["max_tokens"] = min(int(room) or 1, wanted) if isinstance(wanted, int) else int(room) or 1
    machine.request(operation.operation, named)


MODELS = (Control("%ask-model", _ask, 2, 2),)
