"""The tokens of Python text that the interpreter has found readable: enough to see statements, loops and lambdas.

Nothing is parsed here, and nothing nests on our own stack, so that hostile text costs no more than its length. Fields of
f-strings are code like any other.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<space>[ \t\f\ufeff]+|\\(?:\r\n|\r|\n)|\#[^\r\n]*)
    |(?P<newline>\r\n|\r|\n)
    |(?P<prefix>[rbuftRBUFT]{0,2})(?P<quote>\"{3}|'{3}|"|')
    |(?P<word>\w+)
    |(?P<sign>:=|!=|==|.)""",
    re.VERBOSE | re.DOTALL,
)
CLOSES = {")": "(", "]": "[", "}": "{"}
"""What each closing bracket closes."""


class Unreadable(Exception):
    """The text is not what the interpreter takes it for."""


class Token(NamedTuple):
    """A word, a sign, or a quote at either end of a string. A line that ends outside of brackets is the sign `\\n`."""

    text: str
    start: int
    end: int
    depth: int
    """How many brackets and fields it lies in."""


def tokens(source: str) -> Iterator[Token]:
    """All tokens in their order. Raises Unreadable."""
    inside: list[str] = []
    """What is open: brackets, and strings with fields by their prefix and quote; `:` is the format of a field."""
    at = 0
    while at < len(source):
        if inside and inside[-1] not in "([{":
            depth, at = len(inside), _text(source, at, inside)
            if len(inside) < depth and source[at - 1] in "\"'":
                yield Token(source[at - 1], at - 1, at, depth - 1)
            continue
        found = _TOKEN.match(source, at)
        assert found is not None, "every character is at least a sign"
        start, at, text = at, found.end(), found.group()
        match found.lastgroup:
            case "space":
                continue
            case "newline":
                if not inside:
                    yield Token("\n", start, at, 0)
            case "quote":
                yield Token(text, start, at, len(inside))
                inside.append(text)
            case _:
                closed = CLOSES.get(text)
                if closed is not None and (not inside or inside.pop() != closed):
                    raise Unreadable("brackets that do not match")
                yield Token(text, start, at, len(inside))
                if text in "([{":
                    inside.append(text)
                elif text.startswith(":") and _is_field(inside):
                    inside.append(":")
    if inside:
        raise Unreadable("a bracket or a string without an end")
    yield Token("\n", at, at, 0)


def _text(source: str, at: int, inside: list[str]) -> int:
    """Go on through the text of a string, or of a format, up to its end or to the next field."""
    opened = inside[-1]
    if opened == ":":
        end = _next(source, at, "[{}]")
        inside.pop() if source[end] == "}" else inside.append("{")
        return end if source[end] == "}" else end + 1
    quote = opened.lstrip("rbuftRBUFT")
    prefix = opened[: -len(quote)].lower()
    has_fields = "f" in prefix or "t" in prefix
    while True:
        at = _next(source, at, rf"\\|{quote}" + (r"|\{" if has_fields else ""))
        if source.startswith(quote, at):
            inside.pop()
            return at + len(quote)
        if source[at] == "{" and not source.startswith("{{", at):
            inside.append("{")
            return at + 1
        if has_fields and "r" not in prefix and source.startswith("\\N{", at):
            at = _next(source, at, "}")
        at += 1 if source.startswith(("\\{", "}"), at) else 2


def _next(source: str, at: int, pattern: str) -> int:
    found = re.compile(pattern).search(source, at)
    if found is None:
        raise Unreadable("a string without an end")
    return found.start()


def _is_field(inside: list[str]) -> bool:
    """Whether the innermost bracket is a field of a string."""
    return len(inside) > 1 and inside[-1] == "{" and inside[-2] not in "([{"
