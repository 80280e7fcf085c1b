"""Procedures that move the control: calling, evaluating, catching, budgets, output, chance."""

from dataclasses import replace

from holdfast.guests.lisp.data import Datum, Symbol
from holdfast.guests.lisp.errors import LispError
from holdfast.guests.lisp.host_calls import API, LANGUAGE, ROUND, name_arguments
from holdfast.guests.lisp.lang.reader import MAX_NAME_CHARACTERS
from holdfast.guests.lisp.lib.lists import PAIR_BYTES, gather
from holdfast.guests.lisp.lib.numbers import integer
from holdfast.guests.lisp.lib.strings import shown, text
from holdfast.guests.lisp.lib.tables import key, table
from holdfast.guests.lisp.vm.environment import Cell, Closure, Root
from holdfast.guests.lisp.vm.limits import ALIASES, Budget, parse_limits
from holdfast.guests.lisp.vm.registers import Control, Registers
from holdfast.guests.lisp.vm.state import FactStore

_CODE_STEPS = 20
"""What a part of a form costs to expand and compile, in steps."""


def _apply(machine: Registers, arguments: list[Datum]) -> None:
    procedure, *first, last = arguments
    items = gather(machine, last)
    machine.charge(size=PAIR_BYTES * len(items))
    machine.enter(procedure, [*first, *items])


def _evaluate(machine: Registers, arguments: list[Datum]) -> None:
    """Run data as a form of the top level."""
    template = machine.prepare(arguments[0], machine.context.root)
    machine.charge(steps=_CODE_STEPS)
    machine.enter(Closure(template, None), [])


def _evaluate_apart(machine: Registers, arguments: list[Datum]) -> None:
    """Run data on a top level of its own, with facts of its own and only the bindings it is given."""
    form, bindings = arguments
    root = Root(machine.context.root.base)
    for name, value in (table(bindings) if bindings is not None else {}).items():
        root.cells[name] = Cell(name, value)
    template = machine.prepare(form, root)
    machine.charge(steps=_CODE_STEPS)
    context = replace(machine.context, root=root, facts=FactStore())
    machine.enter_within(context, Closure(template, None))


def _define_macro(machine: Registers, arguments: list[Datum]) -> None:
    name, transformer = arguments
    assert isinstance(name, Symbol)
    assert isinstance(transformer, Closure)
    root = transformer.template.root
    root.cells.pop(name.name, None)
    root.macros[name.name] = transformer
    machine.give(None)


def _try(machine: Registers, arguments: list[Datum]) -> None:
    machine.enter_catching(arguments[0])


def _error(machine: Registers, arguments: list[Datum]) -> None:
    """Stop with a message; a symbol before it is the code."""
    code = "error"
    if isinstance(arguments[0], Symbol) and len(arguments) > 1:
        code, arguments = arguments[0].name, arguments[1:]
    raise LispError(code, shown(machine, arguments, separator=" "))


def _with_budget(machine: Registers, arguments: list[Datum]) -> None:
    limits, thunk = arguments
    machine.enter_budget(Budget(parse_limits(limits), machine.context.budget), thunk)


def _budget_remaining(machine: Registers, arguments: list[Datum]) -> None:
    """What the budgets around this place leave of a dimension; nil is no bound."""
    budget = machine.context.budget
    machine.give(None if budget is None else budget.room(ALIASES.get(name := key(arguments[0]), name)))


def _begin_round(machine: Registers, arguments: list[Datum]) -> None:
    """Charge a round of a fixpoint here and to the session; #f where the session has none left."""
    if machine.context.budget is not None:
        machine.context.budget.reserve("iterations")
    # Numbered, because the same call over and over would be taken for a loop that leads nowhere.
    machine.request(ROUND, {"round": machine.meter.calls + 1})


def _use(machine: Registers, arguments: list[Datum]) -> None:
    operation = text(arguments[0])
    assert operation in LANGUAGE
    machine.use(operation)


def _call(machine: Registers, arguments: list[Datum]) -> None:
    """Any operation of the host, by its name."""
    operation = text(arguments[0])
    if len(operation) > MAX_NAME_CHARACTERS:
        raise LispError("too-large", f"a name has at most {MAX_NAME_CHARACTERS} characters")
    machine.request(operation, name_arguments(operation, (), arguments[1:]))


def _perform(machine: Registers, arguments: list[Datum]) -> None:
    """An operation of the language, with a list of its arguments."""
    operation = API[text(arguments[0])]
    given = gather(machine, arguments[1])
    machine.request(operation.operation, name_arguments(operation.name, operation.positions, given))


def _path_of(machine: Registers, arguments: list[Datum]) -> None:
    """The path that an operation of the language is about; the whole world where there is none."""
    operation = API[text(arguments[0])]
    named = name_arguments(operation.name, operation.positions, gather(machine, arguments[1]))
    path = named.get("path")
    machine.give(path if isinstance(path, str) else "")


def _print(machine: Registers, arguments: list[Datum]) -> None:
    machine.meter.print(shown(machine, arguments, separator=" ") + "\n")
    machine.give(None)


def _display(machine: Registers, arguments: list[Datum]) -> None:
    machine.meter.print(shown(machine, arguments, separator=""))
    machine.give(None)


def _newline(machine: Registers, arguments: list[Datum]) -> None:
    machine.meter.print("\n")
    machine.give(None)


def _random(machine: Registers, arguments: list[Datum]) -> None:
    """An integer from 0 to before the bound; the same seed gives the same row."""
    bound = integer(arguments[0])
    if not 0 < bound <= 1 << 63:
        raise LispError("type-error", "the bound of a random number lies between 1 and 2^63")
    # SplitMix64: its whole state is one integer, so a saved run goes on with the same row.
    machine.random_state = (machine.random_state + 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF
    mixed = machine.random_state
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    machine.give((mixed ^ (mixed >> 31)) % bound)


def _now(machine: Registers, arguments: list[Datum]) -> None:
    """The time of the run in milliseconds; it does not move while the run lasts."""
    machine.give(machine.now_ms)


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
    Control("%subeval", _evaluate_apart, 2, 2),
    Control("%define-macro", _define_macro, 2, 2),
    Control("%try", _try, 1, 1),
    Control("%with-budget", _with_budget, 2, 2),
    Control("%begin-round?", _begin_round, 0, 0),
    Control("%use", _use, 1, 1),
    Control("%path-of", _path_of, 2, 2),
    Control("%perform", _perform, 2, 2),
)
