"""Inserts a call into loops over files, so that a file that is larger than one read can fetch its next piece.

The interpreter cannot ask the host for anything while a `for` loop takes the next item from an object. It can at any other place,
so the call is where the loop starts and at the start of its body. It does nothing unless such a file waits for a piece. Lines keep their
numbers; `without_refills` removes the call from the lines that a traceback shows.

The code is scanned and not parsed: a parser of the host would be exposed to untrusted code. A loop that the scan does not
understand stays as it is, and then ends with an error that says how to read the file.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

CALL = "_holdfast_waiting and _holdfast_refill()"
"""Defined by the file prelude. Its value is always false."""
_STATEMENT = f"{CALL}; "
_OPERAND = f" {CALL} or"
_ELEMENT = f"{CALL} or "

_HAS_LOOP = re.compile(r"\bfor\b")
_TOKEN = re.compile(
    r"""(?P<triple>[rRbBuUfFtT]{0,2}(?:\"{3}|'{3}))
    |(?P<string>[rRbBuUfFtT]{0,2}(?:"[^"\\\n]*(?:\\.[^"\\\n]*)*"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'))
    |(?P<skipped>\#[^\n]*|\\\r?\n)
    |(?P<newline>\n)
    |(?P<open>[(\[{])
    |(?P<close>[)\]}])
    |(?P<name>[^\W\d]\w*)
    |(?P<other>:=|:|[^\s\w"'\#\\()\[\]{}:]+|\d\w*|\S)""",
    re.VERBOSE | re.DOTALL,
)
_END_OF_TRIPLE = {
    '"': re.compile(r'[^\\"]*(?:(?:\\.|"(?!""))[^\\"]*)*"""', re.DOTALL),
    "'": re.compile(r"[^\\']*(?:(?:\\.|'(?!''))[^\\']*)*'''", re.DOTALL),
}
_MAX_TOKENS = 1_000
"""Of one comprehension, so that code with many of them is scanned in linear time."""
_TAKE_NO_CALL = frozenset({"def", "class", "async", "@"})
"""How a statement starts that has no place for a call."""


class _Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int
    depth: int
    """Of the brackets around it. A bracket has the depth of what is inside it."""


def insert_refills(code: str) -> str:
    """The code with a call in each loop that may be over a file."""
    if _HAS_LOOP.search(code) is None:
        return code
    lines = list(_logical_lines(code))
    insertions: dict[int, str] = {}
    for number, line in enumerate(lines):
        if line[0].text == "for":
            _enter_loop(lines, number, insertions)
        brackets: list[_Token] = []
        for at, token in enumerate(line):
            if token.kind == "open":
                brackets.append(token)
            elif token.kind == "close" and brackets:
                brackets.pop()
            elif token.text == "for" and brackets:
                _enter_comprehension(line, at, brackets[-1], insertions)
    parts, done = [], 0
    for position in sorted(insertions):
        parts += [code[done:position], insertions[position]]
        done = position
    return "".join([*parts, code[done:]])


def without_refills(text: str) -> str:
    """Shown lines as the author wrote them, with the marks below them in their places."""
    if CALL not in text:
        return text
    lines = text.split("\n")
    for number, line in enumerate(lines):
        for inserted in (_STATEMENT, _OPERAND, _ELEMENT):
            while (at := line.find(inserted)) >= 0:
                line = lines[number] = _cut(line, at, len(inserted))
                if number + 1 < len(lines) and not lines[number + 1].strip(" ~^"):
                    lines[number + 1] = _cut(lines[number + 1], at, len(inserted))
    return "\n".join(lines)


def _cut(line: str, at: int, length: int) -> str:
    return line[:at] + line[at + length :]


def _logical_lines(code: str) -> Iterator[list[_Token]]:
    """The tokens of each line, as Python joins lines. Ends early where the scan cannot follow the code."""
    line: list[_Token] = []
    depth = position = 0
    while (found := _TOKEN.search(code, position)) is not None:
        kind, start, position = str(found.lastgroup), found.start(), found.end()
        if kind == "triple":
            end = _END_OF_TRIPLE[found.group()[-1]].match(code, position)
            if end is None:
                return
            position = end.end()
        if kind == "newline" and depth == 0 and line:
            yield line
            line = []
        if kind in ("newline", "skipped"):
            continue
        depth += kind == "open"
        line.append(_Token(kind, code[start:position], start, position, depth))
        depth -= kind == "close"
    if line:
        yield line


def _enter_loop(lines: list[list[_Token]], number: int, insertions: dict[int, str]) -> None:
    line = lines[number]
    begin = next((at for at, token in enumerate(line) if token.text == "in" and not token.depth), None)
    if begin is None:
        return
    end = next((at for at in range(begin, len(line)) if line[at].text == ":" and not line[at].depth), None)
    if end is None or not _may_be_file(line[begin + 1 : end]):
        return
    body = _body_insertion(lines, number, end)
    if body is not None:
        insertions[line[begin].end] = _OPERAND
        insertions.setdefault(*body)


def _body_insertion(lines: list[list[_Token]], number: int, colon: int) -> tuple[int, str] | None:
    """Where the body after a colon takes a call, and in which form."""
    while colon + 1 >= len(lines[number]):
        number += 1
        if number >= len(lines):
            return None
        if lines[number][0].text != "try":
            return _statement_insertion(lines[number])
        colon = 1
    return lines[number][colon + 1].start, _STATEMENT


def _statement_insertion(line: list[_Token]) -> tuple[int, str] | None:
    first, second = line[0], line[1] if len(line) > 1 else line[0]
    match first.text:
        case "if" | "while":
            is_assignment = len(line) > 2 and line[2].text == ":="
            return (line[2] if is_assignment else first).end, _OPERAND
        case "with" if second.kind != "open":
            return first.end, _OPERAND
        case "for":
            begin = next((token for token in line if token.text == "in" and not token.depth), None)
            return None if begin is None else (begin.end, _OPERAND)
        case text if text in _TAKE_NO_CALL or line[-1].text == ":":
            return None
        case _:
            return first.start, _STATEMENT


def _enter_comprehension(line: list[_Token], at: int, bracket: _Token, insertions: dict[int, str]) -> None:
    """Insert calls into a comprehension whose `for` is at this place, inside this bracket."""
    begin: int | None = None
    for number in range(at, min(len(line), at + _MAX_TOKENS)):
        token = line[number]
        if token.depth != bracket.depth:
            continue
        if begin is None:
            begin = number if token.text == "in" else None
        elif token.text in ("if", "for") or token.kind == "close":
            if _may_be_file(line[begin + 1 : number]):
                insertions[line[begin].end] = _OPERAND
                is_filter = token.text == "if"
                insertions.setdefault(
                    token.end if is_filter else bracket.end, _OPERAND if is_filter else _ELEMENT
                )
            return


def _may_be_file(tokens: list[_Token]) -> bool:
    """Whether an expression is a variable, an attribute, an element or a call of `open`."""
    if not tokens or tokens[0].kind != "name" or any(token.text == "lambda" for token in tokens):
        return False
    if any(token.text == "open" for token in tokens):
        return True
    base = tokens[0].depth
    return all(
        token.depth > base or token.kind == "close" or token.text == "." or token.kind == "name"
        for token in tokens
    ) and not any(token.text == "(" for token in tokens)
