"""Glob patterns over paths relative to the workspace, for policy rules, listings and searches.

`*` and `?` match within one name, `**` matches any number of folders, `[abc]`, `[a-z]` and `[!abc]` match one character.
A name that starts with a dot matches only where the pattern writes the dot. A trailing `**` needs at least one name.

Rules that deny or escalate match more (`for_deny`): dots, case, invisible characters and Unicode form make no
difference, and a pattern that matches a folder also matches everything beneath it.

No pattern matches a path that is absolute, contains `..`, a NUL or a backslash, or starts with a drive letter. Libraries
that we tried let `..` or an absolute path through `**`. Matching time is linear in the path: each wildcard takes the
first place where the text after it fits and never tries another (an atomic group), which finds the same matches.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache

from holdfast.core.errors import InvalidInput

MAX_GLOB_LENGTH = 1024
"""Projects bring their own patterns, and the time to compile one grows with the square of its length."""


class Glob:
    """One pattern. Raises InvalidInput where the pattern can match no relative path."""

    def __init__(self, pattern: str, *, for_deny: bool = False) -> None:
        if not pattern or len(pattern) > MAX_GLOB_LENGTH:
            raise InvalidInput(f"a glob has 1 to {MAX_GLOB_LENGTH:,} characters")
        normal = normalize_path(pattern.rstrip("/") or "/")
        if normal is None:
            raise InvalidInput(
                f"{pattern!r} is not a relative glob", hint="globs are relative, such as 'src/**/*.py'"
            )
        self.pattern = pattern
        self.for_deny = for_deny
        names = _names(casefold_path(normal) if for_deny else normal)
        self.literal_prefix = "/".join(_literal_names(names))
        """The leading names without a wildcard. Every match is this path or is beneath it."""
        self.base_folder = "/".join(_literal_names(names[:-1])) or "."
        """The folder that contains every match."""
        if names and names[-1] == "**":
            if for_deny:
                names.pop()
            else:
                names.append("*")
        self._names = names
        if "[" in pattern:
            _ = self.expression  # a malformed set is refused at once

    def matches(self, path: str) -> bool:
        """Whether a path matches. A path that is not plain and relative never does."""
        normal = normalize_path(path)
        if normal is None:
            return False
        if not normal:
            return not self._names
        return self.expression.fullmatch(casefold_path(normal) if self.for_deny else normal) is not None

    @cached_property
    def expression(self) -> "re.Pattern[str]":
        """Fully matches the paths of the glob, given normalized, and case-folded if it is `for_deny`."""
        # On the first match, because most rules of a long policy are never tried.
        return re.compile(self.expression_text, re.DOTALL)

    @property
    def expression_text(self) -> str:
        """The expression, not compiled."""
        return _expression(self._names, self.for_deny)


@lru_cache(maxsize=4096)
def compile_glob(pattern: str, for_deny: bool = False) -> Glob:
    """A cached Glob. Raises InvalidInput."""
    return Glob(pattern, for_deny=for_deny)


def any_glob(globs: Sequence[Glob]) -> Callable[[str], bool]:
    """Whether a path matches one of these globs, which are all for deny rules or none of them is."""
    if len(globs) < 2:
        return globs[0].matches if globs else lambda _path: False
    expression: re.Pattern[str] | None = None  # on the first match, as in `Glob`
    for_deny = globs[0].for_deny
    matches_root = any(glob.matches(".") for glob in globs)

    def matches(path: str) -> bool:
        nonlocal expression
        normal = normalize_path(path)
        if not normal:
            return normal is not None and matches_root
        if expression is None:
            expression = re.compile("|".join(f"(?:{glob.expression_text})" for glob in globs), re.DOTALL)
        return expression.fullmatch(casefold_path(normal) if for_deny else normal) is not None

    return matches


def compile_file_glob(pattern: str) -> Glob:
    """The glob of a listing or a search, which must be able to match a file. Raises InvalidInput."""
    glob = compile_glob(pattern)
    if not glob.literal_prefix and glob.matches("."):
        raise InvalidInput(f"{pattern!r} matches no files", hint="globs name files, such as 'src/**/*.py'")
    return glob


def match_glob(pattern: str, path: str, *, for_deny: bool = False) -> bool:
    """Whether a path matches a pattern."""
    return compile_glob(pattern, for_deny).matches(path)


def glob_problem(pattern: str) -> str | None:
    """Why a policy may not use a pattern, or None. Stricter than Glob: a rule must mean what its author reads in it."""
    if not pattern:
        return "an empty pattern matches nothing"
    if len(pattern) > MAX_GLOB_LENGTH:
        return f"a pattern has at most {MAX_GLOB_LENGTH:,} characters"
    if pattern[0] == "!":
        return "a pattern cannot be negated; write a deny rule"
    if "{" in pattern or "}" in pattern:
        return "braces are not expanded; write one pattern for each alternative"
    if normalize_path(pattern.rstrip("/") or "/") is None:
        return "a pattern is relative to the workspace; for a folder elsewhere use `within`"
    if any("**" in name and name != "**" for name in pattern.split("/")):
        return "`**` must be a whole name between slashes"
    if "[^" in pattern:
        return "write `[!abc]` instead of `[^abc]`"
    if any(chunk.count("[") != chunk.count("]") for chunk in re.split(r"[*/]", pattern)):
        return "a `[` is not closed"
    try:
        Glob(pattern)
    except InvalidInput as error:
        return str(error)
    return None


def casefold_path(text: str) -> str:
    """The text in a form in which all names that some file system treats as one are equal."""
    if text.isascii():
        return text.lower()
    # Some file systems drop invisible characters from names.
    kept = (character for character in text if unicodedata.category(character) != "Cf")
    return unicodedata.normalize("NFC", "".join(kept).casefold())


def normalize_path(path: str) -> str | None:
    """A plain relative path without empty names and `.`, the empty string for the workspace; None for any other path."""
    if not path or path[0] == "/" or path[-1] == "/" or "\\" in path or "\0" in path:
        return None
    if path[1:2] == ":" and path[0].isascii() and path[0].isalpha():
        return None
    names = path.split("/")
    if ".." in names:
        return None
    if "" in names or "." in names:
        return "/".join(name for name in names if name not in ("", "."))
    return path


def _names(normal: str) -> list[str]:
    names = [name for name in normal.split("/") if name]
    # `**/**` means the same as `**`.
    return [name for at, name in enumerate(names) if name != "**" or at == 0 or names[at - 1] != "**"]


def _literal_names(names: list[str]) -> list[str]:
    literal: list[str] = []
    for name in names:
        if any(character in name for character in "*?["):
            break
        literal.append(name)
    return literal


def _expression(names: list[str], for_deny: bool) -> str:
    """The regular expression of a whole pattern. The last name is never `**`."""
    tail = "(?:/.*)?" if for_deny else ""
    if not names:
        return ".*" if for_deny else ""
    folder = "(?:[^/]*/)" if for_deny else "(?:[^/.][^/]*/)"
    *runs, last = _split(names, "**")
    pieces = ["".join(f"{_name_expression(name, for_deny)}/" for name in run) for run in runs]
    pieces.append("/".join(_name_expression(name, for_deny) for name in last) + tail)
    for at in range(1, len(pieces) - 1):
        pieces[at] = f"(?>{folder}*?{pieces[at]})"
    if runs:
        pieces[-1] = f"{folder}*{'?' if for_deny else ''}{pieces[-1]}"
    return "".join(pieces)


def _name_expression(name: str, for_deny: bool) -> str:
    if not any(character in name for character in "*?["):
        return re.escape(name)
    first, *rest = _split(_character_expressions(name), "*")
    pieces = ["(?=[^/.])" if name[0] in "*?[" and not for_deny else "", *first]
    for at, run in enumerate(rest, start=1):
        text = "".join(run)
        if at == len(rest):
            pieces.append(f"[^/]*{text}")
        elif text:
            pieces.append(f"(?>[^/]*?{text})")
    return "".join(pieces)


def _character_expressions(name: str) -> list[str]:
    """One expression for each character or set; a star stays a star. A `[` that is not closed stands for itself."""
    expressions: list[str] = []
    at = 0
    while at < len(name):
        character = name[at]
        end = name.find("]", at + 2 + (name[at + 1 : at + 2] in ("!", "^"))) if character == "[" else -1
        if character == "*":
            expressions.append("*")
        elif character == "?":
            expressions.append("[^/]")
        elif end > 0:
            expressions.append(_set_expression(name[at + 1 : end]))
            at = end
        else:
            expressions.append(re.escape(character))
        at += 1
    return expressions


def _set_expression(body: str) -> str:
    is_negated = body[0] in "!^"
    characters = body[1:] if is_negated else body
    ranges: list[str] = []
    at = 0
    while at < len(characters):
        first = last = characters[at]
        at += 1
        if characters[at : at + 1] == "-" and at + 1 < len(characters):
            last = characters[at + 1]
            at += 2
        if first > last:
            raise InvalidInput(
                f"the range '{first}-{last}' in '[{body}]' is reversed", hint=f"write '{last}-{first}'"
            )
        ranges.append(f"{re.escape(first)}-{re.escape(last)}")
    return f"(?!/)[{'^' if is_negated else ''}{''.join(ranges)}]"


def _split(items: list[str], separator: str) -> list[list[str]]:
    runs: list[list[str]] = [[]]
    for item in items:
        if item == separator:
            runs.append([])
        else:
            runs[-1].append(item)
    return runs
