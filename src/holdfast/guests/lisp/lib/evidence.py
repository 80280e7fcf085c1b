"""Evidence and model calls: the Python part of `evidence`, `llm/complete` and `llm/intent`.

Evidence is a quotation from a file. Its id is a digest of the file's fingerprint and the line range, so the same quotation
has the same id. A model call requests no more tokens than the enclosing budgets leave; the host's answer reports the cost,
which is charged like that of any call.
"""

import hashlib

from holdfast.guests.lisp.data import Datum, iterate, make_list
from holdfast.guests.lisp.errors import LispError
from holdfast.guests.lisp.host_calls import API, name_arguments
from holdfast.guests.lisp.lib.lists import list_items
from holdfast.guests.lisp.lib.numbers import integer
from holdfast.guests.lisp.lib.strings import text
from holdfast.guests.lisp.vm.registers import Control, Registers


def _ask_model(machine: Registers, arguments: list[Datum]) -> None:
    operation = API[text(arguments[0])]
    named = dict(name_arguments(operation.name, operation.positions, list_items(machine, arguments[1])))
    budget = machine.context.budget
    if budget is not None:
        budget.check("tokens")
        budget.check("cost")
        remaining, wanted = budget.remaining("tokens"), named.get("max_tokens")
        if remaining is not None:
            limit = int(remaining) or 1
            named["max_tokens"] = min(limit, wanted) if isinstance(wanted, int) else limit
    machine.request(operation.operation, named)


MODELS = (Control("%ask-model", _ask_model, 2, 2),)


_MAX_SNIPPET_CHARACTERS = 500
"""Characters that are quoted if no lines are given."""


def _evidence(machine: Registers, arguments: list[Datum]) -> None:
    """Make evidence from a path, its text, its fingerprint and a list of first and last line (from 1), or an empty list."""
    path, content, fingerprint = (text(argument) for argument in arguments[:3])
    span = [integer(item) for item in iterate(arguments[3])]
    machine.charge(steps=len(content) // 100, size=len(content))
    digest = hashlib.sha256(f"{fingerprint}:{span}".encode()).hexdigest()[:16]
    machine.return_value(
        {
            "id": f"ev:sha256:{digest}",
            "ref": path,
            "span": make_list(span),
            "fingerprint": fingerprint,
            "snippet": _lines(content, span) if span else content[:_MAX_SNIPPET_CHARACTERS],
        }
    )


def _lines(content: str, span: list[int]) -> str:
    if len(span) != 2 or not 1 <= span[0] <= span[1]:
        raise LispError("type-error", "write (evidence path) or (evidence path first-line last-line)")
    lines = content.splitlines()
    if span[1] > len(lines):
        raise LispError("type-error", f"the file has {len(lines)} lines, so there is no line {span[1]}")
    return "\n".join(lines[span[0] - 1 : span[1]])


EVIDENCE = (Control("%evidence", _evidence, 4, 4),)
