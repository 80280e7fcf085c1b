"""A count of steps, which the interpreter does not keep by itself: the code counts, and stops at the host past its limit.

A step is a statement, a turn of a loop or a comprehension, or a call of a lambda. At each, an expression is written into
the code, on the same line; a traceback is shown without it. The count is an iterator: whoever gets hold of it can only
make it go faster. Its last word is a call that the host answers by ending the run, so there is nothing to catch.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from holdfast.guests.python.tokens import CLOSES, Token, Unreadable, tokens

STOP = "__step_stop__"
"""The call that code makes past its limit."""
READ = "__step_next__(__step_left__, 0)"
"""Code whose value is the number of the next step, 0 past the limit."""
_UNLIMITED = 1 << 62
_FEEDS = 3
"""A run is three feeds of the interpreter: the beginning of the count, the code, and the reading of the count."""

_STEP = f"__step_next__(__step_left__,0)or {STOP}()"
_STATEMENT = f"{_STEP}; "
_EXPRESSION = f" None if not({_STEP})else "
_FILTER = f" if({_STEP})"
_WRITTEN = re.compile("|".join(re.escape(text) for text in (_STATEMENT, _EXPRESSION, _FILTER)))
_UNDERLINE = re.compile(r" *~+")
_FEED = re.compile(r'(?<=File "<python-input-)\d+')

_MAX_CODE = 50_000
_RESERVED = re.compile(r"__step_\w*")
# Code in a text would not be counted, and could count for itself.
_UNCOUNTED = re.compile(r"\b(?:eval|exec)\b")
_DECIDES = frozenset({"if", "elif", "while", "match"})
_SCOPES = frozenset({"def", "async", "class"})
_COMPOUND = _DECIDES | _SCOPES | {"for", "with", "case", "else", "try", "except", "finally"}


class Uncountable(Exception):
    """Steps of this code cannot be counted; the message says why."""


def beginning(limit: int | None, *, is_first: bool) -> str:
    """Code that sets the count back. The first of a session keeps what it needs from being replaced."""
    kept = "__step_next__, __step_iter__, __step_range__ = next, iter, range\n" if is_first else ""
    last = _UNLIMITED if limit is None else limit
    return f"{kept}__step_left__ = __step_iter__(__step_range__(1, {last} + 1))"


def counted(code: str) -> str:
    """The same code, counting. Every line keeps its number. Raises Uncountable."""
    plain = unicodedata.normalize("NFKC", code)
    for pattern, reason in ((_RESERVED, "is a reserved name"), (_UNCOUNTED, "runs code that nobody counts")):
        if found := pattern.search(plain):
            raise Uncountable(f"`{found.group()}` {reason}")
    if len(code) > _MAX_CODE:
        raise Uncountable(f"it is longer than {_MAX_CODE} characters")
    pieces, done = [], 0
    for place, text in sorted(_insertions(code)):
        pieces += [code[done:place], text]
        done = place
    return "".join([*pieces, code[done:]])


def used(number: int, limit: int | None) -> int:
    """How many steps were made, from the value of `READ`."""
    if number:
        return number - 1
    return _UNLIMITED if limit is None else limit


def as_written(traceback: str) -> str:
    """A traceback of counting code, as the author of the code knows it."""
    lines = _FEED.sub(lambda feed: str(int(feed.group()) // _FEEDS), traceback).split("\n")
    for number, line in enumerate(lines):
        is_underlined = number + 1 < len(lines) and _UNDERLINE.fullmatch(lines[number + 1]) is not None
        for found in reversed(list(_WRITTEN.finditer(line))):
            for each in (number, number + 1) if is_underlined else (number,):
                lines[each] = lines[each][: found.start()] + lines[each][found.end() :]
    return "\n".join(lines)


@dataclass
class _Block:
    """An indented block: what it belongs to, and whether each pass through it is counted."""

    indent: int
    head: str
    is_counted: bool = False


def _insertions(code: str) -> Iterator[tuple[int, str]]:
    """What is written into the code, and where."""
    blocks: list[_Block] = []
    for margin, line in _lines(code):
        indent = len(code[margin : line[0].start].expandtabs())
        _leave(blocks, indent)
        around = blocks[-1].head if blocks else ""
        colon = _colon(line, around)
        steps = list(_steps(line, colon, around))
        for block in reversed(blocks if steps and line[0].text not in _SCOPES else []):
            block.is_counted = True
            if block.head in _SCOPES:
                break
        yield from steps
        written = list(_expressions(line))
        if written and any(sign.text == "=" and end.text in "}!:" for sign, end in pairwise(line)):
            raise Uncountable("a field of an f-string shows the text of a loop or a lambda")
        yield from written
        if colon == len(line) - 1:
            blocks.append(_Block(indent, line[0].text))
    _leave(blocks, 0)


def _leave(blocks: list[_Block], indent: int) -> None:
    while blocks and blocks[-1].indent >= indent:
        block = blocks.pop()
        if not block.is_counted and block.head in ("for", "def", "async"):
            raise Uncountable("a loop or function has nothing in it that counts, but definitions")


def _lines(code: str) -> Iterator[tuple[int, list[Token]]]:
    """Statements up to their last token or to the block below them, and where their line begins."""
    margin, line = 0, list[Token]()
    try:
        for token in tokens(code):
            if token.text != "\n":
                line.append(token)
                continue
            if line:
                yield margin, line
            margin, line = token.end, []
    except Unreadable as error:
        raise Uncountable(f"it has {error}") from None


def _colon(line: list[Token], around: str) -> int | None:
    """Where the body of a compound statement begins; None for a simple one."""
    head, lambdas = line[0].text, 0
    if head not in _COMPOUND or (head == "case" and around != "match"):
        return None
    for place, token in enumerate(line):
        if token.depth:
            continue
        lambdas += token.text == "lambda"
        if token.text == ":" and lambdas == 0:
            return place if head != "match" or place == len(line) - 1 else None
        lambdas -= token.text == ":"
    return None


def _steps(line: list[Token], colon: int | None, around: str) -> Iterator[tuple[int, str]]:
    """A simple statement, the condition of a compound one, and what stands behind its colon."""
    head = line[0].text
    if colon is None:
        # The interpreter takes `match` behind a semicolon for a statement of that name.
        if head not in ("@", "match") and around != "class":
            yield line[0].start, _STATEMENT
        return
    if head in _DECIDES or head == "for":
        at = 0
        if head == "for":
            at = next(place for place, token in enumerate(line) if token.text == "in" and not token.depth)
        if line[at + 2].text == ":=":
            at += 2
        if line[at + 1].text != "*":
            yield line[at].end, _EXPRESSION
    if colon < len(line) - 1 and head != "class":
        yield line[colon + 1].start, _STATEMENT


def _expressions(line: list[Token]) -> Iterator[tuple[int, str]]:
    """Calls of lambdas, and the turns of comprehensions."""
    lambdas: list[int] = []
    loops: dict[int, str] = {}
    """By depth: the last word of a comprehension, `for` before its variables and `in` before what it goes through."""
    for before, token in zip([line[0], *line], line, strict=False):
        text, depth = token.text, token.depth + (token.text in CLOSES)
        if loops.get(depth) == "in" and (text in CLOSES or text in ("for", "if", "async", ",")):
            del loops[depth]
            yield before.end, _FILTER
        if text in CLOSES:
            loops.pop(depth, None)
        elif (text == "for" and depth) or (text == "in" and loops.get(depth) == "for"):
            loops[depth] = text
        elif text == "lambda":
            lambdas.append(depth)
        elif text == ":" and lambdas[-1:] == [depth]:
            lambdas.pop()
            yield token.end, _EXPRESSION
