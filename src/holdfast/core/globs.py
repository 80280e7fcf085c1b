"""Globs: patterns over normalised paths relative to the workspace. Our own, because every library we tried lets `..`
or an absolute path through `**`.

`*` and `?` stay within a segment, `**` spans segments, `[abc]` and `[!abc]` are sets. A pattern is read in one of two
ways. Narrow, for rules that let something pass: a dot file matches only where the pattern writes the dot. Wide, for
rules that hold something up: dots, case and Unicode form make no difference, and what lies beneath a match matches.
No pattern ever matches what is no plain relative path. Matching takes time linear in the path.

Globs over normal paths, for listing and searching: `**` any folders, `*` and `?` within a name, `[...]` one letter.

A name that begins with a dot is matched only where the pattern writes the dot. A star takes the first place where the
fixed part after it fits and never tries another (an atomic group): for globs that finds the same matches, and no
pattern can make the matcher slow.
"""

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

from holdfast.core.errors import InvalidInput

MAX_LENGTH = 1_000
"""Of a pattern: a project brings its own, and making one ready takes time that grows with its square."""
_DRIVE = re.compile(r"[A-Za-z]:")


class Glob:
    """One pattern, ready to match."""

    def __init__(self, pattern: str, *, is_wide: bool = False) -> None:
        self.pattern = pattern
        self.is_wide = is_wide
        segments = _segments(casefold_path(pattern) if is_wide else pattern)
        self.literal = "/".join(_literal_prefix(segments))
        """The leading segments without any wildcard; everything that matches lies at or below them."""
        if is_wide:
            while segments and segments[-1] == "**":
                segments.pop()
            segments.append("**")
        self._runs = _runs(segments, is_wide)

    def matches(self, path: str) -> bool:
        """Whether a path, relative and normalised or nearly so, matches."""
        segments = plain_segments(path)
        if segments is None:
            return False
        if self.is_wide:
            segments = [casefold_path(segment) for segment in segments]
        position = 0
        *middle, last = self._runs
        for number, run in enumerate(middle):
            position = run.find(segments, position, is_anchored=number == 0)
            if position < 0:
                return False
        if last.is_open:
            rest = segments[position:]
            return self.is_wide or (bool(rest) and not any(segment.startswith(".") for segment in rest))
        start = len(segments) - len(last.tests)
        if len(self._runs) == 1:
            return start == 0 and last.fits(segments, 0)
        if start < position or not last.fits(segments, start):
            return False
        return self.is_wide or not any(segment.startswith(".") for segment in segments[position:start])


class _Run(NamedTuple):
    """The segments between two `**`; `is_open` marks the end of a pattern that closes with `**`."""

    tests: tuple["re.Pattern[str] | str", ...]
    is_wide: bool
    is_open: bool = False

    def fits(self, segments: list[str], at: int) -> bool:
        for offset, test in enumerate(self.tests):
            segment = segments[at + offset]
            if not (segment == test if isinstance(test, str) else test.fullmatch(segment)):
                return False
        return True

    def find(self, segments: list[str], start: int, *, is_anchored: bool) -> int:
        """Where the run ends when placed as far left as it goes, -1 where it does not fit."""
        length = len(self.tests)
        for at in range(start, len(segments) - length + 1):
            if self.fits(segments, at):
                return at + length
            if is_anchored or (not self.is_wide and segments[at].startswith(".")):
                return -1
        return -1


@lru_cache(maxsize=4096)
def compiled_glob(pattern: str, is_wide: bool = False) -> Glob:
    """The compiled form of a pattern, kept."""
    return Glob(pattern, is_wide=is_wide)


def match_glob(pattern: str, path: str, *, is_wide: bool = False) -> bool:
    """Whether a path matches a pattern."""
    return compiled_glob(pattern, is_wide).matches(path)


def casefold_path(text: str) -> str:
    """The form in which names that some file system takes for one compare equal."""
    if text.isascii():
        return text.lower()
    # Some file systems drop invisible characters from names.
    seen = (character for character in text if unicodedata.category(character) != "Cf")
    return unicodedata.normalize("NFC", "".join(seen).casefold())


def plain_segments(path: str) -> list[str] | None:
    """The segments of a plain relative path (none for the folder itself), or None for anything else."""
    if not path or path[0] == "/" or path[-1] == "/" or "\\" in path or "\0" in path or _DRIVE.match(path):
        return None
    segments = path.split("/")
    if ".." in segments:
        return None
    if "" in segments or "." in segments:
        return [segment for segment in segments if segment not in ("", ".")]
    return segments


def problem_of_glob(pattern: str) -> str | None:
    """Why a pattern is refused when a policy is loaded."""
    if not pattern:
        return "an empty pattern matches nothing"
    if len(pattern) > MAX_LENGTH:
        return f"a pattern has at most {MAX_LENGTH:,} characters"
    if pattern[0] == "!":
        return "a pattern cannot be negated; write a deny rule"
    if "{" in pattern or "}" in pattern:
        return "braces are not expanded; write one pattern for each alternative"
    if plain_segments(pattern.rstrip("/") or "/") is None:
        return "a pattern is relative to the workspace; for a folder elsewhere use `within`"
    if any("**" in segment and segment != "**" for segment in pattern.split("/")):
        return "`**` stands alone between slashes"
    if any(chunk.count("[") != chunk.count("]") for chunk in re.split(r"[*/]", pattern)):
        return "a `[` is not closed"
    try:
        Glob(pattern)
    except re.error as error:
        return f"a set of characters cannot be read: {error}"
    return None


def _segments(pattern: str) -> list[str]:
    segments = [segment for segment in pattern.split("/") if segment not in ("", ".")]
    # `**/**` says no more than `**`.
    return [s for n, s in enumerate(segments) if s != "**" or n == 0 or segments[n - 1] != "**"]


def _literal_prefix(segments: list[str]) -> list[str]:
    prefix: list[str] = []
    for segment in segments:
        if any(character in segment for character in "*?["):
            break
        prefix.append(segment)
    return prefix


def _runs(segments: list[str], is_wide: bool) -> list[_Run]:
    runs: list[_Run] = []
    tests: list[re.Pattern[str] | str] = []
    for segment in segments:
        if segment == "**":
            runs.append(_Run(tuple(tests), is_wide))
            tests = []
        else:
            tests.append(_segment_test(segment, is_wide))
    if segments and segments[-1] == "**":
        # A closing `**` needs something to stand for, except read wide, where the folder itself is meant too.
        runs.append(_Run((), is_wide, is_open=True))
    else:
        runs.append(_Run(tuple(tests), is_wide))
    return runs


def _segment_test(segment: str, is_wide: bool) -> "re.Pattern[str] | str":
    if not any(character in segment for character in "*?["):
        return segment
    chunks = [_chunk(chunk) for chunk in re.split(r"\*+", segment)]
    # Each star takes as little as it can and never gives back: no backtracking, whatever the path.
    middle = "".join(f"(?>.*?{chunk})" for chunk in chunks[1:-1])
    last = f".*{chunks[-1]}" if len(chunks) > 1 else ""
    guard = "" if is_wide or segment[0] == "." else r"(?!\.)"
    return re.compile(guard + chunks[0] + middle + last, re.DOTALL)


def _chunk(chunk: str) -> str:
    out, at = [], 0
    while at < len(chunk):
        character = chunk[at]
        close = chunk.find("]", at + 2 + (chunk[at + 1 : at + 2] == "!")) if character == "[" else -1
        if character == "?":
            out.append(".")
        elif close > 0:
            body = chunk[at + 1 : close]
            is_negated, body = body[0] == "!", body.removeprefix("!")
            inner = re.sub(r"([\\\[\]^&~|])", r"\\\1", body)
            out.append(f"[{'^' if is_negated else ''}{inner}]")
            at = close
        else:
            out.append(re.escape(character))
        at += 1
    return "".join(out)


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
