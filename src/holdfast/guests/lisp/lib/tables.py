"""Tables: names with values, like JSON objects. A change creates a new table."""

from holdfast.guests.lisp.data import Datum, Keyword, Pair, Primitive, Symbol, kind_of, make_list
from holdfast.guests.lisp.errors import LispError
from holdfast.guests.lisp.lib.lists import PAIR_BYTES
from holdfast.guests.lisp.vm.registers import Control, Registers

_ENTRY_BYTES = 104

Table = dict[str, Datum]


def table(datum: Datum) -> Table:
    """The datum, if it is a table. Raises a LispError otherwise."""
    if type(datum) is dict:
        return datum
    raise LispError("type-error", f"expected a table, not {kind_of(datum)}")


def key(datum: Datum) -> str:
    """The key that a string, keyword or symbol names."""
    if type(datum) is str:
        return datum
    if isinstance(datum, (Keyword, Symbol)):
        return datum.name
    raise LispError("type-error", f"a key must be a string, keyword or symbol, not {kind_of(datum)}")


def _make(*items: Datum) -> Table:
    if len(items) % 2:
        raise LispError("arity-error", "the last key of the table has no value")
    return {key(name): value for name, value in zip(items[::2], items[1::2], strict=True)}


def _get(source: Datum, name: Datum, default: Datum = None) -> Datum:
    return table(source).get(key(name), default)


def _has(source: Datum, name: Datum) -> bool:
    return key(name) in table(source)


def _count(source: Datum) -> int:
    return len(table(source))


def _put(machine: Registers, arguments: list[Datum]) -> None:
    source, *changes = arguments
    added = _make(*changes)
    _charge(machine, len(table(source)) + len(added))
    machine.return_value({**table(source), **added})


def _remove(machine: Registers, arguments: list[Datum]) -> None:
    source, *names = arguments
    removed = {key(name) for name in names}
    _charge(machine, len(table(source)))
    machine.return_value({name: value for name, value in table(source).items() if name not in removed})


def _merge(machine: Registers, arguments: list[Datum]) -> None:
    """Merge tables; later ones take precedence."""
    _charge(machine, sum(len(table(part)) for part in arguments))
    merged: Table = {}
    for part in arguments:
        merged.update(table(part))
    machine.return_value(merged)


def _keys(machine: Registers, arguments: list[Datum]) -> None:
    source = table(arguments[0])
    _charge(machine, len(source))
    machine.return_value(make_list(source))


def _values(machine: Registers, arguments: list[Datum]) -> None:
    source = table(arguments[0])
    _charge(machine, len(source))
    machine.return_value(make_list(source.values()))


def _entries(machine: Registers, arguments: list[Datum]) -> None:
    """A list of (key value) lists."""
    source = table(arguments[0])
    machine.charge(steps=len(source) // 8, size=3 * PAIR_BYTES * len(source))
    machine.return_value(make_list(Pair(name, make_list([value])) for name, value in source.items()))


def _charge(machine: Registers, entries: int) -> None:
    machine.charge(steps=entries // 8, size=_ENTRY_BYTES * entries)


TABLES = (
    Primitive("table", _make, 0, None),
    Primitive("get", _get, 2, 3),
    Primitive("has?", _has, 2, 2),
    Primitive("count", _count, 1, 1),
    Control("put", _put, 3, None),
    Control("remove", _remove, 2, None),
    Control("merge", _merge, 0, None),
    Control("keys", _keys, 1, 1),
    Control("values", _values, 1, 1),
    Control("entries", _entries, 1, 1),
)
