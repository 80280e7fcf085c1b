"""A proposal: one change that is staged and not yet made, shown as a unified diff."""

import difflib
from collections.abc import Sequence
from typing import Literal

from holdfast.core import Value, pluralize
from holdfast.world.contract import fingerprint_of

CONTEXT_LINES = 3
MAX_COMPARED_LINES = 3000
"""Beyond this the differing part is shown as removed and added whole: comparing lines is quadratic at worst."""


class Proposal(Value):
    """What would become of one file. `diff` can be applied with `git apply`; a binary file is described instead."""

    path: str
    kind: Literal["created", "modified", "deleted"]
    diff: str = ""
    is_binary: bool = False
    renamed_from: str | None = None
    """The deleted file whose content this one has."""
    mode: int | None = None


def describe(
    path: str,
    before: bytes | None,
    after: bytes | None,
    *,
    mode: int | None = None,
    mode_before: int | None = None,
    renamed_from: str | None = None,
) -> Proposal:
    """The proposal that leads from one content to another; None is a file that is not there, or its mode as it is."""
    kind: Literal["created", "modified", "deleted"] = (
        "created" if before is None else "deleted" if after is None else "modified"
    )
    old, new = _text(before), _text(after)
    is_binary = old is None or new is None
    if old is None or new is None:
        diff = f"binary file {path}: {_measure(before)} -> {_measure(after)}\n"
    else:
        names = (
            "/dev/null" if before is None else f"a/{path}",
            "/dev/null" if after is None else f"b/{path}",
        )
        diff = unified_diff(old, new, names)
    if kind == "modified" and mode is not None and mode != mode_before:
        diff = f"diff --git a/{path} b/{path}\nold mode 100{mode_before or 0:o}\nnew mode 100{mode:o}\n{diff}"
    return Proposal(
        path=path, kind=kind, diff=diff, is_binary=is_binary, renamed_from=renamed_from, mode=mode
    )


def unified_diff(old: str, new: str, names: tuple[str, str]) -> str:
    """The diff with three lines of context, in time linear in the size of what did not change."""
    # Not splitlines: it also cuts at form feeds and the like, and a diff knows only line feeds.
    before, after = _lines(old), _lines(new)
    head = _shared(before, after)
    tail = _shared(before[head:][::-1], after[head:][::-1])
    first = max(0, head - CONTEXT_LINES)
    last = min(tail, CONTEXT_LINES)
    one, other = before[first : len(before) - tail + last], after[first : len(after) - tail + last]
    if max(len(one), len(other)) > MAX_COMPARED_LINES:
        changes = _whole(one, other, head - first, last)
    else:
        changes = list(difflib.unified_diff(one, other, n=CONTEXT_LINES))[2:]
    if not changes:
        return ""
    shifted = [_shift(line, first) if line.startswith("@@ ") else line for line in changes]
    return "".join(_ended(line) for line in [f"--- {names[0]}\n", f"+++ {names[1]}\n", *shifted])


def _whole(before: Sequence[str], after: Sequence[str], head: int, tail: int) -> list[str]:
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


def _shift(header: str, lines: int) -> str:
    """A hunk's header with its line numbers moved down, as if the lines cut off before were there."""
    if not lines:
        return header
    _, before, after, *_ = header.split(" ")
    return f"@@ -{_moved(before[1:], lines)} +{_moved(after[1:], lines)} @@\n"


def _moved(place: str, lines: int) -> str:
    start, comma, length = place.partition(",")
    return f"{int(start) + lines}{comma}{length}"


def _ended(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    for place, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return place
    return min(len(one), len(other))


def _text(content: bytes | None) -> str | None:
    """The content as text, empty where there is none; None where it is binary."""
    if content is None:
        return ""
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _measure(content: bytes | None) -> str:
    return (
        "nothing" if content is None else f"{pluralize(len(content), 'byte')}, {fingerprint_of(content)[:12]}"
    )
