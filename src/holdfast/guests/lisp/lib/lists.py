"""Lists. Procedures whose time grows with the list charge steps for it."""

from holdfast.guests.lisp.data import EMPTY, Datum, Pair, Primitive, kind_of, make_list
from holdfast.guests.lisp.errors import LispError
from holdfast.guests.lisp.lang.equality import MAX_COMPARISONS, are_equal
from holdfast.guests.lisp.lib.numbers import integer
from holdfast.guests.lisp.vm.registers import Control, Registers

PAIR_BYTES = 64
MAX_ITEMS = 500_000
"""Items of a list that is processed at once, which cannot be interrupted. Item by item, a list may be longer."""
_CHUNK_ITEMS = 1024


def list_items(machine: Registers, datum: Datum) -> list[Datum]:
    """The items of a list; charges steps for the traversal."""
    items: list[Datum] = []
    while type(datum) is Pair:
        items.append(datum.first)
        datum = datum.rest
        if len(items) % _CHUNK_ITEMS == 0:
            machine.charge(steps=_CHUNK_ITEMS // 8)
            check_length(len(items))
    if datum is not EMPTY:
        raise LispError("type-error", f"expected a list, not {kind_of(datum)}")
    return items


def check_length(count: int) -> None:
    """Raise a LispError if the list is too long to process at once."""
    if count > MAX_ITEMS:
        raise LispError("too-large", f"a list of more than {MAX_ITEMS} items cannot be processed at once")


def _pair(datum: Datum) -> Pair:
    if type(datum) is Pair:
        return datum
    raise LispError("type-error", f"expected a non-empty list, not {kind_of(datum)}")


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
    machine.return_value(len(list_items(machine, arguments[0])))


def _append(machine: Registers, arguments: list[Datum]) -> None:
    if not arguments:
        machine.return_value(EMPTY)
        return
    items: list[Datum] = []
    for part in arguments[:-1]:
        items += list_items(machine, part)
        check_length(len(items))
    machine.charge(size=PAIR_BYTES * len(items))
    machine.return_value(make_list(items, arguments[-1]))


def _reverse(machine: Registers, arguments: list[Datum]) -> None:
    items = list_items(machine, arguments[0])
    machine.charge(size=PAIR_BYTES * len(items))
    machine.return_value(make_list(items[::-1]))


def _nth(machine: Registers, arguments: list[Datum]) -> None:
    position = integer(arguments[1])
    items = list_items(machine, arguments[0])
    if not 0 <= position < len(items):
        raise LispError("index-error", f"there is no item {position} in a list of {len(items)}")
    machine.return_value(items[position])


def _member(machine: Registers, arguments: list[Datum]) -> None:
    """The rest of the list from the first equal item, or #f."""
    wanted, rest = arguments
    comparisons_left = MAX_COMPARISONS
    while isinstance(rest, Pair):
        equal, work = are_equal(wanted, rest.first, max_comparisons=comparisons_left)
        machine.charge(steps=work)
        comparisons_left -= work
        if equal:
            machine.return_value(rest)
            return
        rest = rest.rest
    machine.return_value(False)


def _associate(machine: Registers, arguments: list[Datum]) -> None:
    """The first item whose first element equals the key, or #f."""
    wanted, rest = arguments
    comparisons_left = MAX_COMPARISONS
    while isinstance(rest, Pair):
        equal, work = are_equal(wanted, _first(rest.first), max_comparisons=comparisons_left)
        machine.charge(steps=work)
        comparisons_left -= work
        if equal:
            machine.return_value(rest.first)
            return
        rest = rest.rest
    machine.return_value(False)


def _range(machine: Registers, arguments: list[Datum]) -> None:
    """The integers from the first number up to, but not including, the last."""
    bounds = [integer(bound) for bound in arguments]
    start, stop = (0, bounds[0]) if len(bounds) == 1 else (bounds[0], bounds[1])
    step = bounds[2] if len(bounds) == 3 else 1
    if step == 0:
        raise LispError("type-error", "the step of a range must not be zero")
    numbers = range(start, stop, step)
    # Not len(), which fails for more items than fit into a machine word.
    count = max(0, (stop - start + step - (1 if step > 0 else -1)) // step)
    check_length(count)
    machine.charge(size=(PAIR_BYTES + 32) * count)
    machine.charge(steps=count // 8)
    machine.return_value(make_list(numbers))


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
