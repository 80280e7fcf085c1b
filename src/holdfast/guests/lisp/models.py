"""Asking a model from a program: a `with-budget` bounds its tokens and cost, and is charged what the reply cost."""

import math

from holdfast.guests.lisp.data import Datum
from holdfast.guests.lisp.lists import gather
from holdfast.guests.lisp.operations import API, name_arguments
from holdfast.guests.lisp.registers import Control, Registers
from holdfast.guests.lisp.texts import text

_CHARACTERS_PER_TOKEN = 4
"""A guess, used only where a reply does not say what it took."""


def _ask(machine: Registers, arguments: list[Datum]) -> None:
    """The call itself, with no more tokens asked for than the budgets leave."""
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


def _settle(machine: Registers, arguments: list[Datum]) -> None:
    """Charge a reply and give its text. A reply is text, or a table with text, tokens and cost_usd."""
    asked, reply = gather(machine, arguments[0]), arguments[1]
    answer = reply.get("text", reply) if isinstance(reply, dict) else reply
    if machine.context.budget is not None:
        machine.context.budget.settle("tokens", _tokens(asked, reply, answer))
        machine.context.budget.settle("cost", _number(reply, "cost_usd") or 0)
    machine.give(answer)


def _tokens(asked: list[Datum], reply: Datum, answer: Datum) -> float:
    counted = _number(reply, "tokens")
    if counted is not None:
        return counted
    characters = sum(len(item) for item in (*asked, answer) if isinstance(item, str))
    return math.ceil(characters / _CHARACTERS_PER_TOKEN)


def _number(reply: Datum, name: str) -> float | None:
    value = reply.get(name) if isinstance(reply, dict) else None
    return value if isinstance(value, (int, float)) and value >= 0 else None


MODELS = (
    Control("%ask-model", _ask, 2, 2),
    Control("%settle-model", _settle, 2, 2),
)
