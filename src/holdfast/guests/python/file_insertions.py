"""Inserts calls into guest code that uses files, which the interpreter's own objects would not make.

- Loops over files fetch the next piece of a large file (`loop_refills`).
- Statements that may look at files first show the host what open files hold, so that a tool, `pathlib` and `os` see it.
- `path.open(...)` opens the same file objects as `open`. The interpreter's own have no `+` modes and no encodings. Nor have its
  `read_text` and `write_text`, which are replaced where they are given more than the text; `touch` it does not have.

Lines keep their numbers. `as_written` removes the calls from the lines that a traceback shows, and `InsertedCode.position` says where
a place of the new code was. Code that the scan does not understand stays as it is.
"""

import re
from collections.abc import Set
from typing import NamedTuple

from holdfast.guests.python.code_tokens import Token, logical_lines
from holdfast.guests.python.loop_refills import REFILL, Insertions, insert_before, insert_refills

SHOW = "_holdfast_unseen and _holdfast_show()"
PATH, END_OF_PATH = "_holdfast_path(", ", _holdfast_here)"
"""All are defined by the file prelude. The value of the calls is always false."""
_INSERTED = [text for call in (SHOW, REFILL) for text in (f"{call}; ", f" {call} or", f"{call} or ")] + [
    PATH,
    END_OF_PATH,
]
_LOOK_AT_FILES = frozenset(
    [
        "Path",
        "exists",
        "glob",
        "is_dir",
        "is_file",
        "iterdir",
        "lstat",
        "mkdir",
        "os",
        "read_bytes",
        "read_text",
        "rename",
        "rglob",
        "rmdir",
        "stat",
        "touch",
        "unlink",
        "walk",
        "write_bytes",
        "write_text",
    ]
)
"""Names in statements that may look at files, beside those of the tools."""
_NOT_A_VALUE = frozenset(
    [
        "and",
        "as",
        "assert",
        "async",
        "await",
        "del",
        "elif",
        "else",
        "except",
        "finally",
        "for",
        "from",
        "if",
        "import",
        "in",
        "is",
        "lambda",
        "not",
        "or",
        "raise",
        "return",
        "try",
        "while",
        "with",
        "yield",
    ]
)
"""Names that are no values, so a bracket after one of them is not a call."""
_RELEVANT = re.compile(rf"\b(?:for|open|{'|'.join(sorted(_LOOK_AT_FILES))})\b")
_MARKS = re.compile(r" *[~^][ ~^]*")
"""The line of a traceback below the line that it shows."""
_WORD = re.compile(r"[^\W\d]\w*")
_MAX_TOKENS = 1_000
"""Of the expression before `.open`, so that code with many of them is scanned in linear time."""


class InsertedCode(NamedTuple):
    """Code with inserted calls."""

    text: str
    places: tuple[tuple[int, int], ...]
    """Where each insertion ends in the text, and the length of all insertions up to there, in bytes of UTF-8."""

    def position(self, offset: int) -> int:
        """Where a place of this code was before, in bytes of UTF-8."""
        return offset - next((length for end, length in reversed(self.places) if end <= offset), 0)


def insert_file_calls(code: str, groups: Set[str]) -> InsertedCode:
    """The code with its calls, for tools in these groups."""
    lines = list(logical_lines(code)) if _is_relevant(code, groups) else []
    insertions, names = Insertions(), groups | _LOOK_AT_FILES
    for line in lines:
        _show_before_looking(line, names, insertions)
    insert_refills(lines, insertions)
    for line in lines:
        _open_paths(line, insertions)
    parts, places, done, size, length = [], [], 0, 0, 0
    for position in sorted(insertions.texts):
        inserted = "".join(insertions.texts[position])
        parts += [code[done:position], inserted]
        length += len(inserted)
        size += len(code[done:position].encode()) + len(inserted)
        places.append((size, length))
        done = position
    return InsertedCode("".join([*parts, code[done:]]), tuple(places))


def as_written(text: str) -> str:
    """Shown lines as the author wrote them, with the marks below them in their places."""
    if "_holdfast_" not in text:
        return text
    lines = text.split("\n")
    for number, line in enumerate(lines):
        has_marks = number + 1 < len(lines) and bool(_MARKS.fullmatch(lines[number + 1]))
        for inserted in _INSERTED:
            while (at := line.find(inserted)) >= 0:
                line = lines[number] = _cut(line, at, len(inserted))
                if has_marks:
                    lines[number + 1] = _cut(lines[number + 1], at, len(inserted))
    return "\n".join(lines)


def _cut(line: str, at: int, length: int) -> str:
    return line[:at] + line[at + length :]


def _is_relevant(code: str, groups: Set[str]) -> bool:
    return _RELEVANT.search(code) is not None or any(group in code for group in groups)


def _show_before_looking(line: list[Token], names: Set[str], insertions: Insertions) -> None:
    """Insert a call before each statement of a line that may look at files."""
    statement: list[Token] = []
    for token in line:
        if token.text == ";" and not token.depth:
            _show_before(statement, names, insertions)
            statement = []
        else:
            statement.append(token)
    _show_before(statement, names, insertions)


def _show_before(statement: list[Token], names: Set[str], insertions: Insertions) -> None:
    if statement and statement[0].text in ("import", "from"):
        return
    if any(_mentions(token, names) for token in statement):
        insert_before(statement, SHOW, insertions)


def _mentions(token: Token, names: Set[str]) -> bool:
    """Whether a token is one of these names, or a text with replacement fields that may contain one."""
    if token.kind in ("string", "triple") and token.text[:2].strip("bBrRuU")[:1] in tuple("fFtT"):
        return not names.isdisjoint(_WORD.findall(token.text))
    return token.kind == "name" and token.text in names


def _open_paths(line: list[Token], insertions: Insertions) -> None:
    for at in range(2, len(line) - 1):
        is_call = line[at - 1].text == "." and line[at + 1].text == "(" and _needs_files(line, at)
        start = _start_of_value(line, at - 2) if is_call else None
        if start is not None and not (
            start and line[start - 1].kind == "name" and line[start - 1].end == line[start].start
        ):
            insertions.texts.setdefault(line[start].start, []).append(PATH)
            insertions.add(line[at - 1].start, END_OF_PATH)


def _needs_files(line: list[Token], at: int) -> bool:
    """Whether a method at this token does what only the file objects can."""
    name, depth = line[at].text, line[at + 1].depth
    if name not in ("read_text", "write_text"):
        return name in ("open", "touch")
    arguments = 0 if at + 2 >= len(line) or line[at + 2].kind == "close" else 1
    for number in range(at + 2, min(at + 2 + _MAX_TOKENS, len(line) - 1)):
        if line[number].kind == "close" and line[number].depth == depth:
            break
        is_comma = line[number].text.startswith(",") and line[number].depth == depth
        arguments += is_comma and line[number + 1].kind != "close"
    return arguments > (1 if name == "write_text" else 0)


def _start_of_value(line: list[Token], at: int) -> int | None:
    """Where the expression starts that ends at this token and has an attribute. None if the scan does not find it."""
    for _ in range(_MAX_TOKENS):
        token = line[at]
        if token.kind == "close":
            at = _opening(line, at)
            if at < 0:
                return None
            before = line[at - 1] if at else None
            is_called = before is not None and (
                before.kind == "close" or _is_name(before) or before.kind in ("string", "triple")
            )
            if is_called:
                at -= 1
                continue
        elif not _is_name(token) and token.kind not in ("string", "triple"):
            return None
        if at < 2 or line[at - 1].text != ".":
            return at
        at -= 2
    return None


def _opening(line: list[Token], at: int) -> int:
    depth = line[at].depth
    for number in range(at - 1, max(-1, at - _MAX_TOKENS), -1):
        if line[number].kind == "open" and line[number].depth == depth:
            return number
    return -1


def _is_name(token: Token) -> bool:
    return token.kind == "name" and token.text not in _NOT_A_VALUE
