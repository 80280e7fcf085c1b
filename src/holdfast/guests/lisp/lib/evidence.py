"""Evidence: a place in a file, word for word as it was, named by what it says.

Its id is a digest of the file's fingerprint and the lines it is about, so the same look gives the same evidence.

Asking a model from a program: no more tokens are asked for than the budgets around it leave.

What the reply cost comes with the host's answer, and is charged there like the cost of any call.
"""

import hashlib

from holdfast.guests.lisp.data import Datum, iterate, make_list
from holdfast.guests.lisp.errors import LispError
from holdfast.guests.lisp.host_calls import API, name_arguments
from holdfast.guests.lisp.lib.lists import gather
from holdfast.guests.lisp.lib.numbers import integer
from holdfast.guests.lisp.lib.strings import text
from holdfast.guests.lisp.vm.registers import Control, Registers


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


_MAX_SNIPPET = 500
"""Characters of a file that are quoted where no lines are named."""


def _evidence(machine: Registers, arguments: list[Datum]) -> None:
    """Evidence from a path, its text, its fingerprint and a list of first and last line, counted from 1; empty is all."""
    path, content, fingerprint = (text(argument) for argument in arguments[:3])
    span = [integer(item) for item in iterate(arguments[3])]
    machine.charge(steps=len(content) // 100, size=len(content))
    named = hashlib.sha256(f"{fingerprint}:{span}".encode()).hexdigest()[:16]
    machine.give(
        {
            "id": f"ev:sha256:{named}",
            "ref": path,
            "span": make_list(span),
            "fingerprint": fingerprint,
            "snippet": _lines(content, span) if span else content[:_MAX_SNIPPET],
        }
    )


def _lines(content: str, span: list[int]) -> str:
    if len(span) != 2 or not 1 <= span[0] <= span[1]:
        raise LispError("type-error", "evidence is (evidence path) or (evidence path first-line last-line)")
    lines = content.splitlines()
    if span[1] > len(lines):
        raise LispError("type-error", f"the file has {len(lines)} lines, so there is no line {span[1]}")
    return "\n".join(lines[span[0] - 1 : span[1]])


EVIDENCE = (Control("%evidence", _evidence, 4, 4),)
