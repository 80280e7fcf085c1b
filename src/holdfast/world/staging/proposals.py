"""Proposals: staged changes that are not yet committed, shown as unified diffs."""

import difflib
from collections.abc import Sequence
from typing import Literal

from holdfast.core import Value, pluralize, runs_when
from holdfast.world.contract import fingerprint_of

CONTEXT_LINES = 3
MAX_COMPARED_LINES = 3000
"""Longer differing parts are shown as removed and added, because comparing lines is quadratic in the worst case."""


class Proposal(Value):
    """The staged change of one file. `git apply` can apply `diff`; for a binary file it is a description."""

    path: str
    kind: Literal["created", "modified", "deleted"]
    diff: str = ""
    is_binary: bool = False
    renamed_from: str | None = None
    """The deleted file that had the same content."""
    mode: int | None = None
    runs_when: str | None = None
    """What makes another program run or trust the file, as in "this runs when you ..."; None if nothing known does."""
    asks: str = ""
    """Why the change must be approved by name before it is committed; empty if it need not."""


def describe(
    path: str,
    before: bytes | None,
    after: bytes | None,
    *,
    mode: int | None = None,
    mode_before: int | None = None,
    renamed_from: str | None = None,
    asks: str = "",
) -> Proposal:
    """The proposal from one content to another. None means no file, or an unchanged mode."""
    kind: Literal["created", "modified", "deleted"] = (
        "created" if before is None else "deleted" if after is None else "modified"
    )
    old, new = _text(before), _text(after)
    is_binary = old is None or new is None
    if old is None or new is None:
        diff = f"binary file {path}: {_size_and_hash(before)} -> {_size_and_hash(after)}\n"
    else:
        names = (
            "/dev/null" if before is None else f"a/{path}",
            "/dev/null" if after is None else f"b/{path}",
        )
        diff = unified_diff(old, new, names) or _empty_file(
            path, kind, mode if after is not None else mode_before
        )
    if kind == "modified" and mode is not None and mode != mode_before:
        end = (
            diff or "\n"
        )  # a blank line ends a header without a diff, so that git reads the next patch as another one
        diff = f"diff --git a/{path} b/{path}\nold mode 100{mode_before or 0:o}\nnew mode 100{mode:o}\n{end}"
    return Proposal(
        path=path,
        kind=kind,
        diff=diff,
        is_binary=is_binary,
        renamed_from=renamed_from,
        mode=mode,
        runs_when=runs_when(path),
        asks=asks,
    )


def _empty_file(path: str, kind: str, mode: int | None) -> str:
    """The header that stands for a created or deleted file without content, as git writes it."""
    if kind == "modified":
        return ""
    verb = "new" if kind == "created" else "deleted"
    git_mode = "100755" if mode is not None and mode & 0o100 else "100644"  # the only two that git knows
    return f"diff --git a/{path} b/{path}\n{verb} file mode {git_mode}\n\n"  # a blank line ends the header


def unified_diff(old: str, new: str, names: tuple[str, str]) -> str:
    """The diff with three lines of context. Takes linear time for the unchanged start and end."""
    # Not splitlines, which also splits at form feeds; diffs split only at line feeds.
    before, after = _lines(old), _lines(new)
    head = _common_prefix(before, after)
    tail = _common_prefix(before[head:][::-1], after[head:][::-1])
    first = max(0, head - CONTEXT_LINES)
    last = min(tail, CONTEXT_LINES)
    one, other = before[first : len(before) - tail + last], after[first : len(after) - tail + last]
    if max(len(one), len(other)) > MAX_COMPARED_LINES:
        changes = _single_hunk(one, other, head - first, last)
    else:
        changes = list(difflib.unified_diff(one, other, n=CONTEXT_LINES))[2:]
    if not changes:
        return ""
    moved = [_move_header(line, first) if line.startswith("@@ ") else line for line in changes]
    return "".join(_with_newline(line) for line in [f"--- {names[0]}\n", f"+++ {names[1]}\n", *moved])


def _single_hunk(before: Sequence[str], after: Sequence[str], head: int, tail: int) -> list[str]:
    """One hunk that removes and adds everything between the shared lines."""
    context_after = before[len(before) - tail :]
    start_before, start_after = min(1, len(before)), min(1, len(after))
    return [
        f"@@ -{start_before},{len(before)} +{start_after},{len(after)} @@\n",
        *(f" {line}" for line in before[:head]),
        *(f"-{line}" for line in before[head : len(before) - tail]),
        *(f"+{line}" for line in after[head : len(after) - tail]),
        *(f" {line}" for line in context_after),
    ]


def _move_header(header: str, lines: int) -> str:
    """A hunk header with its line numbers moved down by the lines that were cut off before it."""
    if not lines:
        return header
    _, before, after, *_ = header.split(" ")
    return f"@@ -{_move_range(before[1:], lines)} +{_move_range(after[1:], lines)} @@\n"


def _move_range(place: str, lines: int) -> str:
    start, comma, length = place.partition(",")
    return f"{int(start) + lines}{comma}{length}"


def _with_newline(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _common_prefix(one: Sequence[str], other: Sequence[str]) -> int:
    for place, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return place
    return min(len(one), len(other))


def _text(content: bytes | None) -> str | None:
    """The content as text, empty if there is no file; None if it is binary."""
    if content is None:
        return ""
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _size_and_hash(content: bytes | None) -> str:
    return (
        "nothing" if content is None else f"{pluralize(len(content), 'byte')}, {fingerprint_of(content)[:12]}"
    )
