"""Equality of data, and the canonical text of data.

Data is equal by content, numbers by value, procedures by identity; depth and sharing do not matter. Equal data has the same
canonical text, which is the key of a fact and identifies the states of a fixpoint: `n:1` `s:"x"` `b:true` `null` `sym:x`
`key:x` `[a,b]` `[a . b]` `{"k"=v}`. An integral number has one form, so 1 and 1.0 are the same. A procedure has none.
"""

import hashlib
import json

from holdfast.guests.lisp.data import EMPTY, Datum, Empty, Keyword, LispOutcome, Pair, Procedure, Symbol
from holdfast.guests.lisp.errors import LispError
from holdfast.guests.lisp.long_text import LongText

MAX_COMPARISONS = 1_500_000
"""Comparisons at once; a comparison cannot be interrupted."""
_CHARACTERS_PER_COMPARISON = 1024


def are_same(one: Datum, other: Datum) -> bool:
    """Whether two data are equal atoms or the same object. Lists and tables are not compared by content."""
    if one is other:
        return True
    if isinstance(one, bool) or isinstance(other, bool):
        return False
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return one == other
    if isinstance(one, (Pair, dict, LispOutcome)):
        return False
    return type(one) is type(other) and one == other


def are_equal(one: Datum, other: Datum, *, max_comparisons: int = MAX_COMPARISONS) -> tuple[bool, int]:
    """Whether two data have the same content, and the number of comparisons. Raises a LispError above the maximum."""
    pending: list[tuple[Datum, Datum]] = [(one, other)]
    compared: set[tuple[int, int]] = set()
    work = 0
    while pending:
        left, right = pending.pop()
        work += 1
        if type(left) is str and type(right) is str:
            work += min(len(left), len(right)) // _CHARACTERS_PER_COMPARISON
        if work > max_comparisons:
            raise LispError("too-large", f"this takes more than {MAX_COMPARISONS} comparisons at once")
        if are_same(left, right):
            continue
        if type(left) is not type(right) or not isinstance(left, (Pair, dict, LispOutcome)):
            return False, work
        pair = (id(left), id(right))
        if pair in compared:
            continue
        compared.add(pair)
        if isinstance(left, Pair) and isinstance(right, Pair):
            pending.append((left.rest, right.rest))
            pending.append((left.first, right.first))
        elif isinstance(left, dict) and isinstance(right, dict):
            if left.keys() != right.keys():
                return False, work
            work += len(left)
            pending.extend((left[key], right[key]) for key in left)
        elif isinstance(left, LispOutcome) and isinstance(right, LispOutcome):
            if left.tag != right.tag:
                return False, work
            pending.append((left.fields, right.fields))
    return True, work


MAX_PARTS = 100_000
"""Limits the text of data whose parts are shared many times, and the time to make it."""
PART_CHARACTERS = 64


class Allowance:
    """How much canonical text may be made at once: in parts, plus blocks of 64 characters."""

    def __init__(self, max_parts: int = MAX_PARTS) -> None:
        self._max_parts = max_parts
        self.used = 0

    def take(self, text: str) -> str:
        """Count a piece of text. Raises a LispError if the allowance is used up."""
        self.used += 1 + len(text) // PART_CHARACTERS
        if self.used > self._max_parts:
            raise LispError("too-large", f"data of more than {self._max_parts} parts has no canonical form")
        return text


class _Text:
    """A piece of text among the data to write."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


_CLOSE, _COMMA, _DOT, _CLOSE_TABLE = _Text("]"), _Text(","), _Text(" . "), _Text("}")


def canonical(datum: Datum, allowance: Allowance, *, is_procedure_opaque: bool = False) -> str:
    """The canonical text of a datum. A procedure is an error, unless `is_procedure_opaque`."""
    parts: list[str] = []
    pending: list[Datum] = [datum]
    while pending:
        item = pending.pop()
        if isinstance(item, _Text):
            text = item.text
        elif isinstance(item, Pair):
            text = "["
            pending.extend(reversed(_items(item)))
        elif isinstance(item, dict):
            text = "{"
            pending.extend(reversed(_entries(item)))
        elif isinstance(item, LispOutcome):
            text = f"outcome:{item.tag}"
            pending.append(item.fields)
        elif isinstance(item, Procedure) and is_procedure_opaque:
            text = "procedure"
        else:
            text = _atom(item)
        parts.append(allowance.take(text))
    return "".join(parts)


def signature(texts: list[str]) -> str:
    """SHA-256 of texts in any order."""
    return hashlib.sha256("\n".join(sorted(texts)).encode()).hexdigest()


def _items(pair: Pair) -> list[Datum]:
    items: list[Datum] = [pair.first]
    rest = pair.rest
    while isinstance(rest, Pair) and len(items) < 2 * MAX_PARTS:
        items += (_COMMA, rest.first)
        rest = rest.rest
    if rest is not EMPTY:
        items += (_DOT, rest)
    items.append(_CLOSE)
    return items


def _entries(table: dict[str, Datum]) -> list[Datum]:
    entries: list[Datum] = []
    for key in sorted(table):
        entries += (_Text(f"{json.dumps(key)}="), table[key], _COMMA)
    entries.append(_CLOSE_TABLE)
    return entries


def _atom(datum: Datum) -> str:
    match datum:
        case None:
            return "null"
        case bool():
            return "b:true" if datum else "b:false"
        case float() if datum.is_integer():
            return f"n:{int(datum)}"
        case int() | float():
            return f"n:{datum!r}"
        case str():
            return f"s:{json.dumps(datum)}"
        case Symbol():
            return f"sym:{datum.name}"
        case Keyword():
            return f"key:{datum.name}"
        case Empty():
            return "[]"
        case LongText():
            raise LispError("too-large", f"a string of {len(datum):,} characters has no canonical form")
    raise LispError("type-error", "a procedure has no canonical form; use a symbol that names it")
