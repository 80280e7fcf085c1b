"""Globs over normalised paths relative to the workspace. `*` and `?` match within a segment, `**` spans segments, and
`[abc]` and `[!abc]` are sets.

`Glob` matches the paths of policy rules. It is our own because every library that we tried lets `..` or an absolute
path through `**`. A narrow glob, for rules that allow something, matches a dot file only if the pattern contains the
dot. A wide glob, for rules that block something, ignores dots, case and Unicode form, and matches everything beneath a
match. No glob matches anything but a plain relative path.

`compile_pattern` serves listing and searching: it is narrow, and also knows ranges such as `[a-z]`.

Both match in time linear in the path. A star takes the first position where the fixed part after it matches and never
tries another one (an atomic group). For globs this finds the same matches, and no pattern can make the matcher slow.
"""

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

from holdfast.core.errors import InvalidInput

MAX_LENGTH = 1_000
"""Of a pattern. Projects bring their own patterns, and compiling one takes time quadratic in its length."""
_DRIVE = re.compile(r"[A-Za-z]:")


class Glob:
    """A compiled pattern."""

    def __init__(self, pattern: str, *, is_wide: bool = False) -> None:
        self.pattern = pattern
        self.is_wide = is_wide
        segments = _segments(casefold_path(pattern) if is_wide else pattern)
        self.literal = "/".join(_literal_prefix(segments))
        """The leading segments without a wildcard; every match is at or beneath them."""
        if is_wide:
            while segments and segments[-1] == "**":
                segments.pop()
            segments.append("**")
        self._runs = _runs(segments, is_wide)

    def matches(self, path: str) -> bool:
        """Whether a relative, roughly normalised path matches."""
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
    """The segments between two `**`; `is_open` marks the end of a pattern that ends with `**`."""

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
        """Return where the leftmost match of the run ends, or -1 if there is none."""
        length = len(self.tests)
        for at in range(start, len(segments) - length + 1):
            if self.fits(segments, at):
                return at + length
            if is_anchored or (not self.is_wide and segments[at].startswith(".")):
                return -1
        return -1


@lru_cache(maxsize=4096)
def compiled_glob(pattern: str, is_wide: bool = False) -> Glob:
    """Compile a pattern, with a cache."""
    return Glob(pattern, is_wide=is_wide)


def match_glob(pattern: str, path: str, *, is_wide: bool = False) -> bool:
    """Whether a path matches a pattern."""
    return compiled_glob(pattern, is_wide).matches(path)


def casefold_path(text: str) -> str:
    """Return a form in which names that some file system considers the same are equal."""
    if text.isascii():
        return text.lower()
    # Some file systems ignore invisible characters in names.
    seen = (character for character in text if unicodedata.category(character) != "Cf")
    return unicodedata.normalize("NFC", "".join(seen).casefold())


def plain_segments(path: str) -> list[str] | None:
    """Split a plain relative path into segments (none for the folder itself); None for any other path."""
    if not path or path[0] == "/" or path[-1] == "/" or "\\" in path or "\0" in path or _DRIVE.match(path):
        return None
    segments = path.split("/")
    if ".." in segments:
        return None
    if "" in segments or "." in segments:
        return [segment for segment in segments if segment not in ("", ".")]
    return segments


def problem_of_glob(pattern: str) -> str | None:
    """Return why a policy cannot use a pattern, or None."""
    if not pattern:
        return "an empty pattern matches nothing"
    if len(pattern) > MAX_LENGTH:
        return f"a pattern can have at most {MAX_LENGTH:,} characters"
    if pattern[0] == "!":
        return "a pattern cannot be negated; write a deny rule"
    if "{" in pattern or "}" in pattern:
        return "braces are not expanded; write one pattern for each alternative"
    if plain_segments(pattern.rstrip("/") or "/") is None:
        return "a pattern is relative to the workspace; use `within` for a folder elsewhere"
    if any("**" in segment and segment != "**" for segment in pattern.split("/")):
        return "`**` must be a whole segment between slashes"
    if any(chunk.count("[") != chunk.count("]") for chunk in re.split(r"[*/]", pattern)):
        return "a `[` is not closed"
    try:
        Glob(pattern)
    except re.error as error:
        return f"a set of characters is not valid: {error}"
    return None


def _segments(pattern: str) -> list[str]:
    segments = [segment for segment in pattern.split("/") if segment not in ("", ".")]
    # `**/**` is equivalent to `**`.
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
        # A trailing `**` must match at least one segment, except in a wide glob, which includes the folder itself.
        runs.append(_Run((), is_wide, is_open=True))
    else:
        runs.append(_Run(tuple(tests), is_wide))
    return runs


def _segment_test(segment: str, is_wide: bool) -> "re.Pattern[str] | str":
    if not any(character in segment for character in "*?["):
        return segment
    chunks = [_chunk(chunk) for chunk in re.split(r"\*+", segment)]
    # Each star takes as little as possible and never gives it back, so there is no backtracking.
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
    """Compile a pattern to a regular expression that matches whole paths. Raises InvalidInput."""
    if not pattern or len(pattern) > MAX_PATTERN_LENGTH:
        raise InvalidInput(f"a pattern must have 1 to {MAX_PATTERN_LENGTH} characters")
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if pattern.startswith("/") or ".." in parts or "\\" in pattern or "\0" in pattern or not parts:
        raise InvalidInput(
            f"{pattern!r} is not a valid pattern", hint="use a relative pattern, such as 'src/**/*.py'"
        )
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
    """Return the folder that contains every match: the parts before the first wildcard."""
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
    """Build the expression for one segment."""
    fixed, *later = _split(_translate(part), "*")
    guard = "" if part.startswith(".") else r"(?!\.)(?=[^/])"
    pieces = [guard, "".join(fixed)]
    for place, run in enumerate(later, start=1):
        text = "".join(run)
        pieces.append(f"[^/]*{text}" if place == len(later) else f"(?>[^/]*?{text})" if text else "")
    return "".join(pieces)


def _translate(part: str) -> list[str]:
    """Translate each character of a segment; a star stays a star."""
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
    """Translate a set of characters with ranges; a leading `!` or `^` negates it."""
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
            raise InvalidInput(
                f"'[{inside}]' is not a valid set of characters", hint=f"swap the ends of '{first}-{last}'"
            )
        pieces.append(f"{re.escape(first)}-{re.escape(last)}")
    return f"(?!/)[{'^' if is_negated else ''}{''.join(pieces)}]"
