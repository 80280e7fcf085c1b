"""gitignore patterns, as git reads them.

A program can write such a file, so matching is linear in the path: a wildcard takes the first place where the text after it
fits, and never tries another (an atomic group), which finds the same matches.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

MAX_FILE_BYTES = 256 << 10
_MAX_PATTERN = 512


class IgnorePattern:
    """One line of a gitignore file. Paths are relative to the folder of that file."""

    def __init__(self, line: str) -> None:
        self.is_negated = line.startswith("!")
        body = line[1:] if self.is_negated else line
        self.is_folder_only = body.endswith("/")
        body = body.rstrip("/") if self.is_folder_only else body
        self._is_anchored = "/" in body
        self._names = [name for name in body.split("/") if name]

    def matches(self, names: Sequence[str], *, is_folder: bool) -> bool:
        """Whether a path, given as its names, matches by itself; a parent that matches is the caller's concern."""
        if (self.is_folder_only and not is_folder) or not self._names:
            return False
        if not self._is_anchored:
            return _name_matches(self._names[0], names[-1])
        return _names_match(self._names, names)


def parse_patterns(text: str) -> list[IgnorePattern]:
    """Read a gitignore file. Lines that are longer than any real pattern are left out."""
    patterns = []
    for raw in text.splitlines():
        line = raw
        while line.endswith(" ") and not line.endswith("\\ "):
            line = line[:-1]
        if line and not line.startswith("#") and len(line) <= _MAX_PATTERN:
            patterns.append(IgnorePattern(line))
    return patterns


def _names_match(patterns: list[str], names: Sequence[str]) -> bool:
    """Match whole names; `**` takes any number of them, at the end at least one."""
    reached = {0}
    for at, pattern in enumerate(patterns):
        if pattern != "**":
            reached = {i + 1 for i in reached if i < len(names) and _name_matches(pattern, names[i])}
        elif at == len(patterns) - 1:
            return any(i < len(names) for i in reached)
        elif reached:
            reached = set(range(min(reached), len(names)))
        if not reached:
            return False
    return len(names) in reached


def _name_matches(pattern: str, name: str) -> bool:
    if not any(character in pattern for character in "*?[\\"):
        return pattern == name
    expression = _compiled(pattern)
    return expression is not None and expression.fullmatch(name) is not None


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> "re.Pattern[str] | None":
    runs: list[str] = [""]
    at = 0
    while at < len(pattern):
        character = pattern[at]
        if character == "*":
            runs.append("")
        elif character == "?":
            runs[-1] += "."
        elif character == "\\" and at + 1 < len(pattern):
            at += 1
            runs[-1] += re.escape(pattern[at])
        elif character == "[":
            end, expression = _set(pattern, at)
            if end < 0:
                return None  # git matches nothing with a set that is not closed
            runs[-1] += expression
            at = end
        else:
            runs[-1] += re.escape(character)
        at += 1
    first, *rest = runs
    pieces = [first]
    for place, run in enumerate(rest, start=1):
        pieces.append(f".*{run}" if place == len(rest) else f"(?>.*?{run})" if run else "")
    try:
        return re.compile("".join(pieces), re.DOTALL)
    except re.error:
        return None


def _set(pattern: str, start: int) -> tuple[int, str]:
    """The place where a set ends, and its expression; -1 if it does not end."""
    at = start + 1
    is_negated = pattern[at : at + 1] in ("!", "^")
    at += is_negated
    body = ""
    is_first = True
    while at < len(pattern):
        character = pattern[at]
        if character == "]" and not is_first:
            if not body:
                return -1, ""
            return at, f"[{'^' if is_negated else ''}{body}]"
        if character == "[" and pattern[at + 1 : at + 2] == ":":
            end = pattern.find(":]", at)
            name = pattern[at + 2 : end] if end > 0 else ""
            if name not in _CLASSES:
                return -1, ""
            body += _CLASSES[name]
            at = end + 1
        elif character == "\\" and at + 1 < len(pattern):
            at += 1
            body += re.escape(pattern[at])
        elif character == "-" and body and pattern[at + 1 : at + 2] not in ("", "]"):
            body += "-"
        else:
            body += re.escape(character)
        is_first = False
        at += 1
    return -1, ""


_CLASSES = {
    "alnum": "a-zA-Z0-9", "alpha": "a-zA-Z", "blank": " \\t", "digit": "0-9", "lower": "a-z", "upper": "A-Z",
    "space": "\\s", "xdigit": "0-9a-fA-F", "punct": "!-/:-@\\[-`{-~", "cntrl": "\\x00-\\x1f\\x7f",
    "graph": "!-~", "print": " -~",
}  # fmt: skip
