"""Procedures that transfer control or have effects: apply, eval, try, budgets, host calls, output, random numbers."""

from dataclasses import replace

from holdfast.guests.lisp.data import Datum, Symbol
from holdfast.guests.lisp.errors import LispError
from holdfast.guests.lisp.host_calls import API, LANGUAGE, ROUND, name_arguments
from holdfast.guests.lisp.lang.reader import MAX_NAME_CHARACTERS
from holdfast.guests.lisp.lib.lists import PAIR_BYTES, list_items
from holdfast.guests.lisp.lib.numbers import integer
from holdfast.guests.lisp.lib.strings import display_text, text
from holdfast.guests.lisp.lib.tables import key, table
from holdfast.guests.lisp.vm.environment import Cell, Closure, Root
from holdfast.guests.lisp.vm.limits import ALIASES, ScopedBudget, parse_limits
from holdfast.guests.lisp.vm.registers import Control, Registers
from holdfast.guests.lisp.vm.state import FactStore

_CODE_STEPS = 20
"""The cost of expanding and compiling a form, in steps."""


def _apply(machine: Registers, arguments: list[Datum]) -> None:
    procedure, *first, last = arguments
    items = list_items(machine, last)
    machine.charge(size=PAIR_BYTES * len(items))
    machine.enter(procedure, [*first, *items])


def _evaluate(machine: Registers, arguments: list[Datum]) -> None:
    """Evaluate data as a top-level form."""
    template = machine.prepare(arguments[0], machine.context.root)
    machine.charge(steps=_CODE_STEPS)
    machine.enter(Closure(template, None), [])


def _evaluate_isolated(machine: Registers, arguments: list[Datum]) -> None:
    """Evaluate data in a new top level, with its own facts and only the given bindings."""
    form, bindings = arguments
    root = Root(machine.context.root.base)
    for name, value in (table(bindings) if bindings is not None else {}).items():
        root.cells[name] = Cell(name, value)
    template = machine.prepare(form, root)
    machine.charge(steps=_CODE_STEPS)
    context = replace(machine.context, root=root, facts=FactStore())
    machine.enter_in_context(context, Closure(template, None))


def _define_macro(machine: Registers, arguments: list[Datum]) -> None:
    name, transformer = arguments
    assert isinstance(name, Symbol)
    assert isinstance(transformer, Closure)
    root = transformer.template.root
    root.cells.pop(name.name, None)
    root.macros[name.name] = transformer
    machine.return_value(None)


def _try(machine: Registers, arguments: list[Datum]) -> None:
    machine.enter_catching(arguments[0])


def _error(machine: Registers, arguments: list[Datum]) -> None:
    """Raise an error with a message; a symbol before the message is the code."""
    code = "error"
    if isinstance(arguments[0], Symbol) and len(arguments) > 1:
        code, arguments = arguments[0].name, arguments[1:]
    raise LispError(code, display_text(machine, arguments, separator=" "))


def _with_budget(machine: Registers, arguments: list[Datum]) -> None:
    limits, thunk = arguments
    machine.enter_budget(ScopedBudget(parse_limits(limits), machine.context.budget), thunk)


def _budget_remaining(machine: Registers, arguments: list[Datum]) -> None:
    """What the enclosing budgets leave of a dimension; nil means unlimited."""
    budget = machine.context.budget
    name = key(arguments[0])
    machine.return_value(None if budget is None else budget.remaining(ALIASES.get(name, name)))


def _begin_round(machine: Registers, arguments: list[Datum]) -> None:
    """Charge a round of a fixpoint to the budgets and the session; #f if the session has none left."""
    if machine.context.budget is not None:
        machine.context.budget.reserve("iterations")
    # Numbered, because the loop detector would stop a repeated identical call.
    machine.request(ROUND, {"round": machine.meter.calls + 1})


def _use(machine: Registers, arguments: list[Datum]) -> None:
    operation = text(arguments[0])
    assert operation in LANGUAGE
    machine.require_permission(operation)


def _call(machine: Registers, arguments: list[Datum]) -> None:
    """Call any operation of the host by its name."""
    operation = text(arguments[0])
    if len(operation) > MAX_NAME_CHARACTERS:
        raise LispError("too-large", f"a name has at most {MAX_NAME_CHARACTERS} characters")
    machine.request(operation, name_arguments(operation, (), arguments[1:]))


def _perform(machine: Registers, arguments: list[Datum]) -> None:
    """Call an operation of the language with a list of arguments."""
    operation = API[text(arguments[0])]
    items = list_items(machine, arguments[1])
    machine.request(operation.operation, name_arguments(operation.name, operation.positions, items))


def _path_of(machine: Registers, arguments: list[Datum]) -> None:
    """The path argument of an operation; an empty path, which means all files, if it has none."""
    operation = API[text(arguments[0])]
    named = name_arguments(operation.name, operation.positions, list_items(machine, arguments[1]))
    path = named.get("path")
    machine.return_value(path if isinstance(path, str) else "")


def _print(machine: Registers, arguments: list[Datum]) -> None:
    machine.meter.print(display_text(machine, arguments, separator=" ") + "\n")
    machine.return_value(None)


def _display(machine: Registers, arguments: list[Datum]) -> None:
    machine.meter.print(display_text(machine, arguments, separator=""))
    machine.return_value(None)


def _newline(machine: Registers, arguments: list[Datum]) -> None:
    machine.meter.print("\n")
    machine.return_value(None)


def _random(machine: Registers, arguments: list[Datum]) -> None:
    """An integer from 0 up to, but not including, the bound. The same seed gives the same sequence."""
    bound = integer(arguments[0])
    if not 0 < bound <= 1 << 63:
        raise LispError("type-error", "the bound of a random number must be between 1 and 2^63")
    # SplitMix64: its state is one integer, so a restored run continues the same sequence.
    machine.random_state = (machine.random_state + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    mixed = machine.random_state
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    machine.return_value((mixed ^ (mixed >> 31)) % bound)


def _now(machine: Registers, arguments: list[Datum]) -> None:
    """The start time of the run in milliseconds; it does not change during the run."""
    machine.return_value(machine.now_ms)


CONTROLS = (
    Control("apply", _apply, 2, None),
    Control("error", _error, 1, None),
    Control("call", _call, 1, None),
    Control("print", _print, 0, None),
    Control("display", _display, 1, None),
    Control("newline", _newline, 0, 0),
    Control("random", _random, 1, 1),
    Control("now", _now, 0, 0),
    Control("budget-remaining", _budget_remaining, 1, 1),
    Control("%eval", _evaluate, 1, 1),
    Control("%subeval", _evaluate_isolated, 2, 2),
    Control("%define-macro", _define_macro, 2, 2),
    Control("%try", _try, 1, 1),
    Control("%with-budget", _with_budget, 2, 2),
    Control("%begin-round?", _begin_round, 0, 0),
    Control("%use", _use, 1, 1),
    Control("%path-of", _path_of, 2, 2),
    Control("%perform", _perform, 2, 2),
)
