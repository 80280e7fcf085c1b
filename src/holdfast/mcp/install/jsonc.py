"""A JSON document of another program, edited in place: everything else stays as written, comments included.

Editors accept comments and trailing commas, and people format their files by hand. So a member is inserted into and
removed from the text itself. Parsing and serializing would lose the comments and the layout.
"""

import json
import re
from typing import Any, NamedTuple

Step = str | int
"""A key of an object or an index of a list."""

_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')
_SPACE = re.compile(r"\s*")
_DECODER = json.JSONDecoder()


class _Member(NamedTuple):
    """One member of an object or list, by its positions in the text."""

    step: Step
    begin: int
    """The start of its key, if it has one."""
    value: int
    end: int
    comma: int | None
    """The position of the comma after it."""


class JsoncDocument:
    """The text and value of one JSON object. Each change returns a new document."""

    def __init__(self, text: str) -> None:
        """Raises ValueError if the text is not a JSON object. An empty text is an empty object."""
        self.text = text
        self._uncommented = _COMMENT.sub(_blank, text)
        self._plain = _TRAILING_COMMA.sub(_blank, self._uncommented)
        self.value: dict[str, Any] = json.loads(self._plain) if self._plain.strip() else {}
        if not isinstance(self.value, dict):
            raise ValueError("it is not a JSON object")

    @property
    def is_plain(self) -> bool:
        """Whether it is standard JSON, without comments and trailing commas."""
        return self._plain == self.text

    def get(self, *path: Step) -> Any:
        """The value at a path; None if there is none."""
        found: Any = self.value
        for step in path:
            if isinstance(found, dict):
                found = found.get(step)
            elif isinstance(found, list) and isinstance(step, int) and step < len(found):
                found = found[step]
            else:
                return None
        return found

    def put(self, *path: Step, value: object) -> "JsoncDocument":
        """Set the value at a path, as the last member if it is new. Missing objects are created."""
        if not self._plain.strip():
            return JsoncDocument(json.dumps(_nest(path, value), indent=2, ensure_ascii=False) + "\n")
        start = self._root()
        for depth, step in enumerate(path):
            member = self._member(start, step)
            if member is None:
                return self._with_member(start, step, _nest(path[depth + 1 :], value))
            start = member.value
        indent = self._indent(start)
        end = _DECODER.raw_decode(self._plain, start)[1]
        return JsoncDocument(self.text[:start] + self._render(value, indent) + self.text[end:])

    def append(self, *path: Step, item: object) -> "JsoncDocument":
        """Append an item to the list at a path, which is created if it is missing."""
        existing = self.get(*path)
        return (
            self.put(*path, value=[item]) if existing is None else self.put(*path, len(existing), value=item)
        )

    def without(self, *path: Step) -> "JsoncDocument":
        """Remove the member at a path, and every container that becomes empty."""
        if not self._plain.strip():
            return self
        *parents, last = path
        start: int | None = self._root()
        for step in parents:
            found = self._member(start, step) if start is not None else None
            start = found.value if found is not None else None
        if start is None or self._member(start, last) is None:
            return self
        remaining = self._without_member(start, last)
        if remaining.get(*parents) or remaining._has_comments(parents):
            return remaining
        return remaining.without(*parents) if parents else JsoncDocument("")

    def _without_member(self, start: int, step: Step) -> "JsoncDocument":
        members, _ = self._members(start)
        index = max(number for number, each in enumerate(members) if each.step == step)
        member, before = members[index], members[index - 1] if index else None
        begin = len(self.text[: member.begin].rstrip())
        if member.comma is not None:
            return JsoncDocument(self.text[:begin] + self.text[member.comma + 1 :])
        kept = self.text[:begin]
        if before is not None and before.comma is not None:
            kept = kept[: before.comma] + kept[before.comma + 1 :]
        return JsoncDocument(kept + self.text[member.end :])

    def _with_member(self, start: int, step: Step, value: object) -> "JsoncDocument":
        members, closing = self._members(start)
        key = f"{json.dumps(step, ensure_ascii=False)}: " if isinstance(step, str) else ""
        if not members:
            outer = self._indent(start)
            inner = outer + self._indent_unit()
            head = self.text[:closing].rstrip()
            piece = f"{self._newline}{inner}{key}{self._render(value, inner)}{self._newline}{outer}"
            return JsoncDocument(head + piece + self.text[closing:])
        last = members[-1]
        line = self.text.rfind("\n", 0, last.begin) + 1
        lead = self.text[line : last.begin]
        has_own_line = line > start and not lead.strip()
        piece = f"{self._newline}{lead}" if has_own_line else " "
        piece += key + self._render(value, lead if has_own_line else None)
        if last.comma is not None:
            at = self._line_end(last.comma + 1, closing) if has_own_line else last.comma + 1
            return JsoncDocument(f"{self.text[:at]}{piece},{self.text[at:]}")
        at = self._line_end(last.end, closing) if has_own_line else last.end
        return JsoncDocument(f"{self.text[: last.end]},{self.text[last.end : at]}{piece}{self.text[at:]}")

    def _members(self, start: int) -> tuple[list[_Member], int]:
        """The members of the object or list at a position, and the position of its closing bracket."""
        closing = "}" if self._plain[start] == "{" else "]"
        members: list[_Member] = []
        at = _skip(self._plain, start + 1)
        while self._plain[at] != closing:
            begin, step = at, len(members)
            if closing == "}":
                step, at = _DECODER.raw_decode(self._plain, at)
                at = _skip(self._plain, _skip(self._plain, at) + 1)
            end = _DECODER.raw_decode(self._plain, at)[1]
            after = _skip(self._uncommented, end)
            comma = after if self._uncommented[after] == "," else None
            members.append(_Member(step, begin, at, end, comma))
            at = _skip(self._plain, end if comma is None else comma + 1)
        return members, at

    def _member(self, start: int, step: Step) -> _Member | None:
        if self._plain[start] not in "{[":
            raise ValueError(f"{step!r} cannot be added: its parent is not an object or a list")
        return next((each for each in reversed(self._members(start)[0]) if each.step == step), None)

    def _has_comments(self, path: list[Step]) -> bool:
        """Whether an empty container still has a comment in it."""
        start = self._root()
        for step in path:
            member = self._member(start, step)
            assert member is not None
            start = member.value
        end = _DECODER.raw_decode(self._plain, start)[1]
        within = self.text if not path else self.text[start:end]
        return within.strip()[1:-1].strip() != ""

    def _root(self) -> int:
        return _skip(self._plain, 0)

    def _line_end(self, at: int, closing: int) -> int:
        """The end of the line, so that a comment after a member stays after it."""
        end = self._uncommented.find("\n", at, closing)
        return len(self.text[:end].rstrip("\r")) if end >= 0 else at

    def _indent(self, at: int) -> str:
        line = self.text[self.text.rfind("\n", 0, at) + 1 : at]
        return line[: len(line) - len(line.lstrip())]

    def _indent_unit(self) -> str:
        found = re.search(r'\n([ \t]+)"', self._plain)
        return found[1] if found else "  "

    @property
    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    def _render(self, value: object, indent: str | None) -> str:
        """A value in the layout of this document; on one line if there is no indent."""
        if indent is None:
            return json.dumps(value, ensure_ascii=False)
        lines = json.dumps(value, ensure_ascii=False, indent=self._indent_unit()).split("\n")
        return f"{self._newline}{indent}".join(lines)


def _nest(path: tuple[Step, ...], value: object) -> object:
    for step in reversed(path):
        value = {step: value}
    return value


def _blank(found: re.Match[str]) -> str:
    """Replace a match with spaces, so that positions stay the same. Strings are kept."""
    return found[1] or " " * len(found[0])


def _skip(text: str, at: int) -> int:
    """The next position that is not white space."""
    space = _SPACE.match(text, at)
    assert space is not None
    return space.end()
