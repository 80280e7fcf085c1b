"""Lists. What takes a time that grows with the list is charged for it."""

from holdfast.guests.lisp.data import EMPTY, Datum, Pair, Primitive, kind_of, make_list
from holdfast.guests.lisp.errors import LispError
from holdfast.guests.lisp.lang.equality import MAX_COMPARISONS, are_equal
from holdfast.guests.lisp.lib.numbers import integer
from holdfast.guests.lisp.vm.registers import Control, Registers

PAIR_BYTES = 64
MAX_ITEMS = 500_000
"""Of a list that is taken as a whole: that is not interruptible. Item by item, lists may be longer."""
_CHUNK = 1024


def gather(machine: Registers, datum: Datum) -> list[Datum]:
    """The items of a list, with the walk along it charged as it goes."""
    items: list[Datum] = []
    while type(datum) is Pair:
        items.append(datum.first)
        datum = datum.rest
        if len(items) % _CHUNK == 0:
            machine.charge(steps=_CHUNK // 8)
            check_length(len(items))
    if datum is not EMPTY:
        raise LispError("type-error", f"expected a list, this is {kind_of(datum)}")
    return items


def check_length(count: int) -> None:
    """Refuse what would take too long at once."""
    if count > MAX_ITEMS:
        raise LispError("too-large", f"a list of more than {MAX_ITEMS} items cannot be taken as a whole")


def _pair(datum: Datum) -> Pair:
    if type(datum) is Pair:
        return datum
    raise LispError("type-error", f"expected a list with something in it, this is {kind_of(datum)}")


def _first(datum: Datum) -> Datum:
    if type(datum) is Pair:
        return datum.first
    return _pair(datum)


def _rest(datum: Datum) -> Datum:
    if type(datum) is Pair:
        return datum.rest
    return _pair(datum)


def _second(datum: Datum) -> Datum:
    return _first(_rest(datum))


def _third(datum: Datum) -> Datum:
    return _first(_rest(_rest(datum)))


def _list(*items: Datum) -> Datum:
    return make_list(items)


def _is_empty(datum: Datum) -> bool:
    return datum is EMPTY


def _is_pair(datum: Datum) -> bool:
    return type(datum) is Pair


def _length(machine: Registers, arguments: list[Datum]) -> None:
    machine.give(len(gather(machine, arguments[0])))


def _append(machine: Registers, arguments: list[Datum]) -> None:
    if not arguments:
        machine.give(EMPTY)
        return
    items: list[Datum] = []
    for part in arguments[:-1]:
        items += gather(machine, part)
        check_length(len(items))
    machine.charge(size=PAIR_BYTES * len(items))
    machine.give(make_list(items, arguments[-1]))


def _reverse(machine: Registers, arguments: list[Datum]) -> None:
    items = gather(machine, arguments[0])
    machine.charge(size=PAIR_BYTES * len(items))
    machine.give(make_list(items[::-1]))


def _nth(machine: Registers, arguments: list[Datum]) -> None:
    position = integer(arguments[1])
    items = gather(machine, arguments[0])
    if not 0 <= position < len(items):
        raise LispError("index-error", f"there is no item {position} in a list of {len(items)}")
    machine.give(items[position])


def _member(machine: Registers, arguments: list[Datum]) -> None:
    """The list from the first item on that is equal, or #f."""
    wanted, rest = arguments
    left = MAX_COMPARISONS
    while isinstance(rest, Pair):
        equal, work = are_equal(wanted, rest.first, most=left)
        machine.charge(steps=work)
        left -= work
        if equal:
            machine.give(rest)
            return
        rest = rest.rest
    machine.give(False)


def _associate(machine: Registers, arguments: list[Datum]) -> None:
    """The first pair whose first is equal to the key, or #f."""
    wanted, rest = arguments
    left = MAX_COMPARISONS
    while isinstance(rest, Pair):
        equal, work = are_equal(wanted, _first(rest.first), most=left)
        machine.charge(steps=work)
        left -= work
        if equal:
            machine.give(rest.first)
            return
        rest = rest.rest
    machine.give(False)


def _range(machine: Registers, arguments: list[Datum]) -> None:
    """From the first number to before the last."""
    bounds = [integer(bound) for bound in arguments]
    start, stop = (0, bounds[0]) if len(bounds) == 1 else (bounds[0], bounds[1])
    step = bounds[2] if len(bounds) == 3 else 1
    if step == 0:
        raise LispError("type-error", "the step of a range is not zero")
    numbers = range(start, stop, step)
    # Not len(): that fails beyond what a machine word holds.
    count = max(0, (stop - start + step - (1 if step > 0 else -1)) // step)
    check_length(count)
    machine.charge(size=(PAIR_BYTES + 32) * count)
    machine.charge(steps=count // 8)
    machine.give(make_list(numbers))


LISTS = (
    Primitive("cons", Pair, 2, 2),
    Primitive("car", _first, 1, 1),
    Primitive("cdr", _rest, 1, 1),
    Primitive("first", _first, 1, 1),
    Primitive("rest", _rest, 1, 1),
    Primitive("second", _second, 1, 1),
    Primitive("third", _third, 1, 1),
    Primitive("cadr", _second, 1, 1),
    Primitive("caddr", _third, 1, 1),
    Primitive("list", _list, 0, None),
    Primitive("null?", _is_empty, 1, 1),
    Primitive("empty?", _is_empty, 1, 1),
    Primitive("pair?", _is_pair, 1, 1),
    Control("length", _length, 1, 1),
    Control("append", _append, 0, None),
    Control("reverse", _reverse, 1, 1),
    Control("nth", _nth, 2, 2),
    Control("member", _member, 2, 2),
    Control("assoc", _associate, 2, 2),
    Control("range", _range, 1, 3),
)
