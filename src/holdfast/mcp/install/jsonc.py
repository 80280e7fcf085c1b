"""A JSON document of another program, edited in place: whatever is not ours stays as it was written, comments included.

Editors read JSON with comments and with a comma after the last member, and people lay their files out by hand. So a
member is put in and taken out of the text itself; parsing and writing anew would lose all of that.
"""

import json
import re
from typing import Any, NamedTuple

Step = str | int
"""A key of an object or a place in a list."""

_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')
_SPACE = re.compile(r"\s*")
_DECODER = json.JSONDecoder()


class _Member(NamedTuple):
    """One member of an object or list, by where it stands in the text."""

    step: Step
    begin: int
    """Of its key, where it has one."""
    value: int
    end: int
    comma: int | None
    """Where the comma after it stands."""


class JsoncDocument:
    """The text of one JSON object, and what it says. Each change is a document of its own."""

    def __init__(self, text: str) -> None:
        """Raises ValueError where the text is no JSON object. Nothing at all is an object without members."""
        self.text = text
        self._bare = _COMMENT.sub(_blank, text)
        self._plain = _LAST_COMMA.sub(_blank, self._bare)
        self.value: dict[str, Any] = json.loads(self._plain) if self._plain.strip() else {}
        if not isinstance(self.value, dict):
            raise ValueError("it is not a JSON object")

    @property
    def is_plain(self) -> bool:
        """Whether it is JSON to everybody: no comments, and no comma after a last member."""
        return self._plain == self.text

    def get(self, *path: Step) -> Any:
        """What stands at the end of a path; None where nothing does."""
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
        """With this value there, put at the end of what it stands in; objects that are missing on the way are made."""
        if not self._plain.strip():
            return JsoncDocument(json.dumps(_wrapped(path, value), indent=2, ensure_ascii=False) + "\n")
        start = self._root()
        for depth, step in enumerate(path):
            member = self._member(start, step)
            if member is None:
                return self._added(start, step, _wrapped(path[depth + 1 :], value))
            start = member.value
        indent = self._indent(start)
        end = _DECODER.raw_decode(self._plain, start)[1]
        return JsoncDocument(self.text[:start] + self._spelt(value, indent) + self.text[end:])

    def add(self, *path: Step, item: object) -> "JsoncDocument":
        """With this item at the end of the list there, which is made where it is missing."""
        standing = self.get(*path)
        return (
            self.put(*path, value=[item]) if standing is None else self.put(*path, len(standing), value=item)
        )

    def without(self, *path: Step) -> "JsoncDocument":
        """Without what stands there, and without what it leaves empty; the text is empty where nothing is left."""
        if not self._plain.strip():
            return self
        *way, last = path
        start: int | None = self._root()
        for step in way:
            found = self._member(start, step) if start is not None else None
            start = found.value if found is not None else None
        if start is None or self._member(start, last) is None:
            return self
        left = self._cut(start, last)
        if left.get(*way) or left._holds_words(way):
            return left
        return left.without(*way) if way else JsoncDocument("")

    def _cut(self, start: int, step: Step) -> "JsoncDocument":
        members, _ = self._members(start)
        place = max(index for index, each in enumerate(members) if each.step == step)
        member, before = members[place], members[place - 1] if place else None
        begin = len(self.text[: member.begin].rstrip())
        if member.comma is not None:
            return JsoncDocument(self.text[:begin] + self.text[member.comma + 1 :])
        kept = self.text[:begin]
        if before is not None and before.comma is not None:
            kept = kept[: before.comma] + kept[before.comma + 1 :]
        return JsoncDocument(kept + self.text[member.end :])

    def _added(self, start: int, step: Step, value: object) -> "JsoncDocument":
        members, closing = self._members(start)
        key = f"{json.dumps(step, ensure_ascii=False)}: " if isinstance(step, str) else ""
        if not members:
            outer = self._indent(start)
            inner = outer + self._unit()
            head = self.text[:closing].rstrip()
            piece = f"{self._newline}{inner}{key}{self._spelt(value, inner)}{self._newline}{outer}"
            return JsoncDocument(head + piece + self.text[closing:])
        last = members[-1]
        line = self.text.rfind("\n", 0, last.begin) + 1
        lead = self.text[line : last.begin]
        is_on_its_line = line > start and not lead.strip()
        piece = f"{self._newline}{lead}" if is_on_its_line else " "
        piece += key + self._spelt(value, lead if is_on_its_line else None)
        if last.comma is not None:
            at = self._line_end(last.comma + 1, closing) if is_on_its_line else last.comma + 1
            return JsoncDocument(f"{self.text[:at]}{piece},{self.text[at:]}")
        at = self._line_end(last.end, closing) if is_on_its_line else last.end
        return JsoncDocument(f"{self.text[: last.end]},{self.text[last.end : at]}{piece}{self.text[at:]}")

    def _members(self, start: int) -> tuple[list[_Member], int]:
        """The members of the object or list that begins there, and where its closing bracket stands."""
        closing = "}" if self._plain[start] == "{" else "]"
        members: list[_Member] = []
        at = _skip(self._plain, start + 1)
        while self._plain[at] != closing:
            begin, step = at, len(members)
            if closing == "}":
                step, at = _DECODER.raw_decode(self._plain, at)
                at = _skip(self._plain, _skip(self._plain, at) + 1)
            end = _DECODER.raw_decode(self._plain, at)[1]
            after = _skip(self._bare, end)
            comma = after if self._bare[after] == "," else None
            members.append(_Member(step, begin, at, end, comma))
            at = _skip(self._plain, end if comma is None else comma + 1)
        return members, at

    def _member(self, start: int, step: Step) -> _Member | None:
        if self._plain[start] not in "{[":
            raise ValueError(f"{step!r} cannot be put into what stands there")
        return next((each for each in reversed(self._members(start)[0]) if each.step == step), None)

    def _holds_words(self, path: list[Step]) -> bool:
        """Whether somebody has written a comment where nothing else is left."""
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
        """The end of the line there, so that a comment behind a member stays behind it."""
        end = self._bare.find("\n", at, closing)
        return len(self.text[:end].rstrip("\r")) if end >= 0 else at

    def _indent(self, at: int) -> str:
        line = self.text[self.text.rfind("\n", 0, at) + 1 : at]
        return line[: len(line) - len(line.lstrip())]

    def _unit(self) -> str:
        found = re.search(r'\n([ \t]+)"', self._plain)
        return found[1] if found else "  "

    @property
    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    def _spelt(self, value: object, indent: str | None) -> str:
        """A value in the layout of this document; on one line where there is no indent."""
        if indent is None:
            return json.dumps(value, ensure_ascii=False)
        lines = json.dumps(value, ensure_ascii=False, indent=self._unit()).split("\n")
        return f"{self._newline}{indent}".join(lines)


def _wrapped(path: tuple[Step, ...], value: object) -> object:
    for step in reversed(path):
        value = {step: value}
    return value


def _blank(found: re.Match[str]) -> str:
    """As many spaces, so that every place in the text stays where it is; strings are left alone."""
    return found[1] or " " * len(found[0])


def _skip(text: str, at: int) -> int:
    """The next place that is no space."""
    space = _SPACE.match(text, at)
    assert space is not None
    return space.end()
