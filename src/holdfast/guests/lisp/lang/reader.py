"""The reader: text to data. It keeps the place of every list, and Python's stack does not limit the depth."""

import math
import re
from bisect import bisect_right
from itertools import accumulate

from holdfast.guests.lisp.data import EMPTY, Datum, Keyword, Pair, Symbol
from holdfast.guests.lisp.errors import LispSyntaxError, SourcePlace
from holdfast.guests.lisp.lang.trampoline import garbage_collection_paused

MAX_CHARACTERS = 1 << 18
"""Characters of a program. Reading cannot be interrupted, and this much takes up to two tenths of a second."""
MAX_DIGITS = 1200
"""Digits of an integer, the maximum for numbers."""
MAX_NAME_CHARACTERS = 1000
"""Characters of a symbol or keyword; names appear in messages and are shared."""

_TOKEN = re.compile(
    r"""
    (?P<space>[\s\ufeff]+|;[^\n]*)
  | (?P<open>[(\[{])
  | (?P<close>[)\]}])
  | (?P<prefix>'|`|,@|,)
  | (?P<string>"(?:[^"\\]|\\.)*")
  | (?P<unclosed>")
  | (?P<atom>[^\s()\[\]{}'`,";]+)
    """,
    re.VERBOSE | re.DOTALL,
)
_INTEGER = re.compile(r"[+-]?[0-9]+\Z")
# Each digit can match in one place only: otherwise a long run of digits takes quadratic time.
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_ESCAPE = re.compile(r"\\(?:u\{([0-9a-fA-F]{1,6})\}|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "0": "\0"}
_PREFIXES = {"'": "quote", "`": "quasiquote", ",": "unquote", ",@": "unquote-splicing"}
_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_CONSTANTS: dict[str, Datum] = {"#t": True, "#true": True, "#f": False, "#false": False, "nil": None}


class _OpenForm:
    """A list that is being read, or a prefix such as a quote that waits for its datum."""

    def __init__(self, opener: str, place: SourcePlace) -> None:
        self.opener, self.place = opener, place
        self.items: list[Datum] = []
        self.tail: Datum = EMPTY
        self.dot: int | None = None
        """The number of items before a dot; exactly one must follow it."""


def read(text: str) -> list[Datum]:
    """Read all forms of a program. Raises LispSyntaxError with line and column."""
    if len(text) > MAX_CHARACTERS:
        raise LispSyntaxError(f"the program has {len(text)} characters; the maximum is {MAX_CHARACTERS}")
    with garbage_collection_paused():
        return _read(text)


def _read(text: str) -> list[Datum]:
    line_starts = [0, *accumulate(len(line) for line in text.split("\n"))]
    line_starts = [start + number for number, start in enumerate(line_starts[:-1])]

    def place_of(offset: int) -> SourcePlace:
        line = bisect_right(line_starts, offset)
        return SourcePlace(line, offset - line_starts[line - 1] + 1)

    top = _OpenForm("", SourcePlace(1, 1))
    open_forms = [top]
    offset = 0
    while offset < len(text):
        token = _TOKEN.match(text, offset)
        assert token is not None, "every character starts a token"
        kind, word, start = token.lastgroup, token.group(), offset
        offset = token.end()
        if kind == "space":
            continue
        if kind == "open" or kind == "prefix":
            open_forms.append(_OpenForm(word, place_of(start)))
            continue
        if kind == "close":
            datum = _close(open_forms.pop(), word, place_of(start))
        elif kind == "string":
            datum = _string(word, place_of(start))
        elif kind == "unclosed":
            raise LispSyntaxError("this string has no closing quote", place=place_of(start))
        elif word == ".":
            _dot(open_forms[-1], place_of(start))
            continue
        else:
            datum = _atom(word, place_of(start))
        _add(open_forms, datum)
    if len(open_forms) > 1:
        last = open_forms[-1]
        raise LispSyntaxError(f"this {last.opener!r} is never closed", place=last.place)
    return top.items


def _add(open_forms: list[_OpenForm], datum: Datum) -> None:
    """Add a datum to the open form, and complete the prefixes before it."""
    while open_forms[-1].opener in _PREFIXES:
        prefix = open_forms.pop()
        quoted = Symbol(_PREFIXES[prefix.opener])
        datum = Pair(quoted, Pair(datum, EMPTY, prefix.place), prefix.place)
    open_forms[-1].items.append(datum)


def _dot(form: _OpenForm, place: SourcePlace) -> None:
    if form.opener != "(" or not form.items or form.dot is not None:
        raise LispSyntaxError("a dot is only allowed before the last item of a list", place=place)
    form.dot = len(form.items)


def _close(form: _OpenForm, closer: str, place: SourcePlace) -> Datum:
    expected = _CLOSERS.get(form.opener)
    if expected is None:
        what = f"nothing follows {form.opener!r}" if form.opener else "nothing is open"
        raise LispSyntaxError(f"unexpected {closer!r}: {what}", place=place)
    if closer != expected:
        raise LispSyntaxError(
            f"{closer!r} does not close the {form.opener!r} at {form.place}; expected {expected!r}",
            place=place,
        )
    items, tail = form.items, EMPTY
    if form.opener == "{":
        items = [Symbol("table"), *items]
    datum: Datum = tail
    if form.dot is not None:
        if len(items) != form.dot + 1:
            raise LispSyntaxError("exactly one item must follow the dot of a list", place=place)
        datum = items.pop()
    for item in reversed(items):
        datum = Pair(item, datum, form.place)
    return datum


def _string(word: str, place: SourcePlace) -> str:
    def unescape(escape: re.Match[str]) -> str:
        digits, letter = escape.groups()
        if digits is not None and (code := int(digits, 16)) <= 0x10FFFF:
            return chr(code)
        if letter in _ESCAPED:
            return _ESCAPED[letter]
        raise LispSyntaxError(f"{escape.group()!r} is not a valid escape in a string", place=place)

    text = _ESCAPE.sub(unescape, word[1:-1])
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise LispSyntaxError("a lone surrogate is not text", place=place)
    return text


def _atom(word: str, place: SourcePlace) -> Datum:
    if word in _CONSTANTS:
        return _CONSTANTS[word]
    if word[0] in "+-.0123456789":
        number = _number(word, place)
        if number is not None:
            return number
    if len(word) > MAX_NAME_CHARACTERS:
        raise LispSyntaxError(f"a name has at most {MAX_NAME_CHARACTERS} characters", place=place)
    if word[0] == ":" and len(word) > 1:
        return Keyword(word[1:])
    if word[0] == "#" or not word.isprintable():
        raise LispSyntaxError(f"{word[:40]!r} is neither a value nor a name", place=place)
    return Symbol(word)


def _number(word: str, place: SourcePlace) -> int | float | None:
    if _INTEGER.match(word):
        if len(word) > MAX_DIGITS:
            raise LispSyntaxError(f"an integer has at most {MAX_DIGITS} digits", place=place)
        return int(word)
    if not _DECIMAL.match(word):
        return None
    number = float(word)
    if not math.isfinite(number):
        raise LispSyntaxError(f"{word[:40]} is too large", place=place)
    return number
