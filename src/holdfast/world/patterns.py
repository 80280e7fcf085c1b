"""Globs over normal paths, for listing and searching: `**` any folders, `*` and `?` within a name, `[...]` one letter.

A name that begins with a dot is matched only where the pattern writes the dot. A star takes the first place where the
fixed part after it fits and never tries another (an atomic group): for globs that finds the same matches, and no
pattern can make the matcher slow.
"""

import re
from functools import lru_cache

from holdfast.core.errors import InvalidInput

MAX_PATTERN_LENGTH = 1024

_FOLDERS = r"(?:(?!\.)[^/]+/)"


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """The expression that fully matches the paths of a glob. Raises InvalidInput."""
    if not pattern or len(pattern) > MAX_PATTERN_LENGTH:
        raise InvalidInput(f"a pattern has 1 to {MAX_PATTERN_LENGTH} characters")
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if pattern.startswith("/") or ".." in parts or "\\" in pattern or "\0" in pattern or not parts:
        raise InvalidInput(f"{pattern!r} is no pattern", hint="patterns are relative, such as 'src/**/*.py'")
    if parts[-1] == "**":
        parts.append("*")
    runs = _split(parts, "**")
    first, *later = ["".join(_name(part) + "/" for part in run) for run in runs[:-1]] + [
        "/".join(map(_name, runs[-1]))
    ]
    pieces = [first]
    for place, run in enumerate(later, start=1):
        is_last = place == len(later)
        pieces.append(f"{_FOLDERS}*{run}" if is_last else f"(?>{_FOLDERS}*?{run})")
    return re.compile("".join(pieces))


def fixed_folder(pattern: str) -> str:
    """The folder that every match lies in: the parts before the first that has a wildcard."""
    fixed: list[str] = []
    for part in pattern.split("/")[:-1]:
        if any(letter in part for letter in "*?["):
            break
        if part not in ("", "."):
            fixed.append(part)
    return "/".join(fixed) or "."


def _split(parts: list[str], separator: str) -> list[list[str]]:
    runs: list[list[str]] = [[]]
    for part in parts:
        if part == separator:
            runs.append([])
        else:
            runs[-1].append(part)
    return runs


def _name(part: str) -> str:
    """The expression for one part of a path."""
    fixed, *later = _split(_letters(part), "*")
    guard = "" if part.startswith(".") else r"(?!\.)(?=[^/])"
    pieces = [guard, "".join(fixed)]
    for place, run in enumerate(later, start=1):
        text = "".join(run)
        pieces.append(f"[^/]*{text}" if place == len(later) else f"(?>[^/]*?{text})" if text else "")
    return "".join(pieces)


def _letters(part: str) -> list[str]:
    """One expression a letter; a star stays a star."""
    letters: list[str] = []
    place = 0
    while place < len(part):
        letter = part[place]
        place += 1
        if letter == "*":
            letters.append("*")
        elif letter == "?":
            letters.append("[^/]")
        elif letter == "[" and (end := part.find("]", place + 1)) > 0:
            letters.append(_set(part[place:end]))
            place = end + 1
        else:
            letters.append(re.escape(letter))
    return letters


def _set(inside: str) -> str:
    """The letters between brackets, ranges included; `!` or `^` in front turns it round."""
    is_negated = inside[0] in "!^" and len(inside) > 1
    letters = inside[1:] if is_negated else inside
    pieces: list[str] = []
    place = 0
    while place < len(letters):
        first = last = letters[place]
        place += 1
        if letters[place : place + 1] == "-" and place + 1 < len(letters):
            last = letters[place + 1]
            place += 2
        if first > last:
            raise InvalidInput(f"'[{inside}]' is no set of letters", hint=f"'{first}-{last}' runs backwards")
        pieces.append(f"{re.escape(first)}-{re.escape(last)}")
    return f"(?!/)[{'^' if is_negated else ''}{''.join(pieces)}]"
