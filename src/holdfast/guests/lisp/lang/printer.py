"""The printer: data as text, for people (`display`) or to be read back (`write`). Length is bounded, depth is not."""

from holdfast.guests.lisp.data import (
    EMPTY,
    Datum,
    Keyword,
    LispOutcome,
    Operation,
    Pair,
    Primitive,
    Symbol,
)
from holdfast.guests.lisp.errors import LispError
from holdfast.guests.lisp.long_text import LongText
from holdfast.guests.lisp.vm.environment import Closure
from holdfast.guests.lisp.vm.registers import Control

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}
"""The backslash must be first, because the other escapes add backslashes."""
_QUOTES = {"quote": "'", "quasiquote": "`", "unquote": ",", "unquote-splicing": ",@"}


class _Text:
    """A piece of text among the data to print."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


_CLOSE, _SPACE, _DOT, _CLOSE_TABLE = _Text(")"), _Text(" "), _Text(" . "), _Text("}")


MAX_PARTS = 100_000
"""Limits the text of data whose parts are shared many times, and the time to make it."""


def show(datum: Datum, *, max_characters: int, is_readable: bool = True) -> str:
    """The text of a datum, cut off shortly after `max_characters`. Raises a LispError if it has too many parts."""
    parts: list[str] = []
    length = 0
    pending: list[Datum] = [datum]
    while pending and length <= max_characters:
        item = pending.pop()
        if isinstance(item, Pair):
            text = _open(item, pending)
        elif isinstance(item, dict):
            text = "{"
            _add_entries(item, pending)
        elif isinstance(item, LispOutcome):
            text = f"#<outcome {item.tag} "
            pending += (_Text(">"), item.fields)
        else:
            text = item.text if isinstance(item, _Text) else _atom(item, is_readable)
        parts.append(text)
        length += len(text)
        if len(parts) > MAX_PARTS:
            raise LispError(
                "too-large", f"data of more than {MAX_PARTS} parts cannot be printed; print less of it"
            )
    return "".join(parts)


def _open(pair: Pair, pending: list[Datum]) -> str:
    """Push the items of a list, and return the text that opens it."""
    if isinstance(pair.first, Symbol) and pair.first.name in _QUOTES:
        rest = pair.rest
        if isinstance(rest, Pair) and rest.rest is EMPTY:
            pending.append(rest.first)
            # The space separates `,` from a following `@`.
            return _QUOTES[pair.first.name] + (" " if pair.first.name == "unquote" else "")
    items: list[Datum] = [pair.first]
    rest = pair.rest
    while isinstance(rest, Pair) and len(items) <= 2 * MAX_PARTS:
        items += (_SPACE, rest.first)
        rest = rest.rest
    if rest is not EMPTY:
        items += (_DOT, rest)
    items.append(_CLOSE)
    pending.extend(reversed(items))
    return "("


def _add_entries(table: dict[str, Datum], pending: list[Datum]) -> None:
    entries: list[Datum] = []
    for key, value in table.items():
        entries += (key, _SPACE, value, _SPACE)
    pending.append(_CLOSE_TABLE)
    pending.extend(reversed(entries[:-1]))


def _atom(datum: Datum, is_readable: bool) -> str:
    match datum:
        case None:
            return "nil"
        case bool():
            return "#t" if datum else "#f"
        case int() | float() | Symbol() | Keyword():
            return repr(datum)
        case str():
            return _quoted(datum) if is_readable else datum
        case LongText():
            raise LispError(
                "too-large", f"a string of {len(datum):,} characters cannot be printed; print a part of it"
            )
        case Closure():
            return f"#<procedure {datum.template.node.name or 'without a name'}>"
        case Primitive() | Control() | Operation():
            return f"#<procedure {datum.name}>"
    return "()" if datum is EMPTY else "#<unknown>"


def _quoted(text: str) -> str:
    """The text as a string literal. Not with `str.translate`, which is ten times slower and cannot be interrupted."""
    for plain, escaped in _ESCAPES.items():
        text = text.replace(plain, escaped)
    return f'"{text}"'
