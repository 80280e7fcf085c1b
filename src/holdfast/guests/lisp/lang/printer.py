"""From data to text: `display` for people, `write` so that it can be read back. As long as asked for, however deep."""

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
from holdfast.guests.lisp.vm.environment import Closure
from holdfast.guests.lisp.vm.registers import Control

_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}
"""The backslash first: the others bring new ones."""
_QUOTES = {"quote": "'", "quasiquote": "`", "unquote": ",", "unquote-splicing": ",@"}


class _Text:
    """A piece of text among data that still has to be shown."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


_CLOSE, _SPACE, _DOT, _CLOSE_TABLE = _Text(")"), _Text(" "), _Text(" . "), _Text("}")


MAX_PARTS = 100_000
"""Data may share its parts so often that its text has no end; also keeps the time this takes short."""


def show(datum: Datum, *, most: int, is_readable: bool = True) -> str:
    """The text of a datum, cut off a little after `most` characters. Raises a fault where it has too many parts."""
    parts: list[str] = []
    length = 0
    waiting: list[Datum] = [datum]
    while waiting and length <= most:
        item = waiting.pop()
        if isinstance(item, Pair):
            text = _open(item, waiting)
        elif isinstance(item, dict):
            text = "{"
            _add_entries(item, waiting)
        elif isinstance(item, LispOutcome):
            text = f"#<outcome {item.tag} "
            waiting += (_Text(">"), item.fields)
        else:
            text = item.text if isinstance(item, _Text) else _atom(item, is_readable)
        parts.append(text)
        length += len(text)
        if len(parts) > MAX_PARTS:
            raise LispError(
                "too-large", f"data of more than {MAX_PARTS} parts cannot be shown; show less of it"
            )
    return "".join(parts)


def _open(pair: Pair, waiting: list[Datum]) -> str:
    """Begin a list: put its items up for showing, and give what stands before them."""
    if isinstance(pair.first, Symbol) and pair.first.name in _QUOTES:
        rest = pair.rest
        if isinstance(rest, Pair) and rest.rest is EMPTY:
            waiting.append(rest.first)
            # A space keeps `,` and `@` apart where what is unquoted begins with one.
            return _QUOTES[pair.first.name] + (" " if pair.first.name == "unquote" else "")
    items: list[Datum] = [pair.first]
    rest = pair.rest
    while isinstance(rest, Pair) and len(items) <= 2 * MAX_PARTS:
        items += (_SPACE, rest.first)
        rest = rest.rest
    if rest is not EMPTY:
        items += (_DOT, rest)
    items.append(_CLOSE)
    waiting.extend(reversed(items))
    return "("


def _add_entries(table: dict[str, Datum], waiting: list[Datum]) -> None:
    entries: list[Datum] = []
    for key, value in table.items():
        entries += (key, _SPACE, value, _SPACE)
    waiting.append(_CLOSE_TABLE)
    waiting.extend(reversed(entries[:-1]))


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
        case Closure():
            return f"#<procedure {datum.template.node.name or 'without a name'}>"
        case Primitive() | Control() | Operation():
            return f"#<procedure {datum.name}>"
    return "()" if datum is EMPTY else "#<unknown>"


def _quoted(text: str) -> str:
    """As it is written in a program. Not by `str.translate`, which holds up everything else ten times as long."""
    for plain, escaped in _ESCAPES.items():
        text = text.replace(plain, escaped)
    return f'"{text}"'
