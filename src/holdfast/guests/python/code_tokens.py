"""Scans guest code into the tokens of its logical lines.

The code is scanned and not parsed: a parser of the host would be exposed to untrusted code.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<triple>[rRbBuUfFtT]{0,2}(?:\"{3}|'{3}))
    |(?P<string>[rRbBuUfFtT]{0,2}(?:"[^"\\\n]*(?:\\.[^"\\\n]*)*"|'[^'\\\n]*(?:\\.[^'\\\n]*)*'))
    |(?P<skipped>\#[^\n]*|\\\r?\n)
    |(?P<newline>\n)
    |(?P<open>[(\[{])
    |(?P<close>[)\]}])
    |(?P<name>[^\W\d]\w*)
    |(?P<other>:=|:|;|[^\s\w"'\#\\()\[\]{}:;]+|\d\w*|\S)""",
    re.VERBOSE | re.DOTALL,
)
_END_OF_TRIPLE = {
    '"': re.compile(r'[^\\"]*(?:(?:\\.|"(?!""))[^\\"]*)*"""', re.DOTALL),
    "'": re.compile(r"[^\\']*(?:(?:\\.|'(?!''))[^\\']*)*'''", re.DOTALL),
}


class Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int
    depth: int
    """Of the brackets around it. A bracket has the depth of what is inside it."""


def logical_lines(code: str) -> Iterator[list[Token]]:
    """The tokens of each line, as Python joins lines. Ends early where the scan cannot follow the code."""
    line: list[Token] = []
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
        line.append(Token(kind, code[start:position], start, position, depth))
        depth -= kind == "close"
    if line:
        yield line
