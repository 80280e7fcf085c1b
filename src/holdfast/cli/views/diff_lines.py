"""A diff for a person: its lines with their kind, and the words that changed in a line.

The command line, the chat and the diff viewer draw the same lines. Nothing in them can control the terminal.
"""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

from holdfast.cli.terminal.console import Tone
from holdfast.core import escape_invisible
from holdfast.world import Proposal

LineKind = Literal["note", "header", "hunk", "context", "added", "removed"]
MAX_PAIRED_LINES = 60
MAX_COMPARED_CHARACTERS = 500
"""Longer blocks and lines are coloured as a whole: comparing words takes time, and highlights there help nobody."""
MAX_PAIRED_CHARACTERS = 1_000_000
"""Of a block that is kept, to be compared."""
_MIN_LIKENESS = 0.4
_WORD = re.compile(r"\w+|\s+|.", re.DOTALL)


class Piece(NamedTuple):
    """Part of a line, and whether it differs from its counterpart."""

    text: str
    is_changed: bool = False


class DiffLine(NamedTuple):
    """One line of a diff."""

    kind: LineKind
    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        """The whole line."""
        return "".join(piece.text for piece in self.pieces)


LINE_TONES: dict[LineKind, Tone] = {
    "note": "ask",
    "header": "strong",
    "hunk": "strong",
    "context": "plain",
    "added": "good",
    "removed": "bad",
}


def diff_lines(proposal: Proposal) -> Iterator[DiffLine]:
    """What is to be known about a proposal, then its diff. One by one: the lines of a large file take ten times its size."""
    yield from (_line("note", note) for note in proposal_notes(proposal))
    yield from _with_words(_diff(proposal))


def proposal_notes(proposal: Proposal) -> Iterator[str]:
    """What is not in the diff: what runs the file, why it asks, renames, and files without a text."""
    path = escape_invisible(proposal.path)
    if proposal.runs_when is not None:
        yield f"{path}: this runs when you {proposal.runs_when}"
    if proposal.asks:
        yield f"{path}: a program changed it, and it needs your approval by name: {escape_invisible(proposal.asks)}"
    if proposal.renamed_from is not None:
        yield f"{path} renamed from {escape_invisible(proposal.renamed_from)}"
    if not proposal.is_binary and "@@" not in proposal.diff:
        what = {
            "created": "a new empty file",
            "deleted": "an empty file, deleted",
            "modified": "only its mode",
        }
        yield f"{path}: {what[proposal.kind]}"


def _diff(proposal: Proposal) -> Iterator[DiffLine]:
    is_in_hunk = False
    # Not splitlines, which also splits at form feeds.
    for line in _split(proposal.diff):
        shown = escape_invisible(line)
        is_in_hunk = is_in_hunk or line.startswith("@@ ")
        if line.startswith("@@ "):
            yield _line("hunk", shown)
        elif not is_in_hunk:
            yield _line("header", shown)
        elif line.startswith("+"):
            yield _line("added", shown)
        elif line.startswith("-"):
            yield _line("removed", shown)
        else:
            yield _line("context", shown)


def _split(diff: str) -> Iterator[str]:
    start = 0
    while (end := diff.find("\n", start)) >= 0:
        yield diff[start:end]
        start = end + 1
    if start < len(diff) or not diff:
        yield diff[start:]


def _with_words(lines: Iterator[DiffLine]) -> Iterator[DiffLine]:
    """The lines, with the changed words marked where removed lines are followed by as many added ones."""
    removed: list[DiffLine] = []
    added: list[DiffLine] = []
    is_long = False
    """Whether this block of removed lines is too long to compare; then it is not kept."""
    kept = 0
    for line in lines:
        if line.kind == "removed" and is_long:
            yield line
            continue
        if line.kind == "removed" and not added:
            removed.append(line)
        elif line.kind == "added" and removed:
            added.append(line)
        else:
            yield from _paired(removed, added)
            removed, added, kept = ([line], [], 0) if line.kind == "removed" else ([], [], 0)
            if line.kind != "removed":
                yield line
        kept += len(line.pieces[0].text)
        is_large = kept > MAX_PAIRED_CHARACTERS
        is_long = len(removed) > MAX_PAIRED_LINES or (is_large and bool(removed))
        if is_long or len(added) > MAX_PAIRED_LINES:
            yield from (*removed, *added)
            removed, added, kept = [], [], 0
    yield from _paired(removed, added)


def _paired(removed: Sequence[DiffLine], added: Sequence[DiffLine]) -> Iterator[DiffLine]:
    if len(removed) != len(added) or len(removed) > MAX_PAIRED_LINES:
        yield from (*removed, *added)
        return
    pairs = [_marked(old.text, new.text) for old, new in zip(removed, added, strict=True)]
    yield from (DiffLine("removed", old) for old, _ in pairs)
    yield from (DiffLine("added", new) for _, new in pairs)


def _marked(old: str, new: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Two lines, sign included, with the words marked that differ; unmarked if they have little in common."""
    if max(len(old), len(new)) > MAX_COMPARED_CHARACTERS:
        return (Piece(old),), (Piece(new),)
    one, other = _WORD.findall(old[1:]), _WORD.findall(new[1:])
    matcher = SequenceMatcher(None, one, other, autojunk=False)
    if matcher.ratio() < _MIN_LIKENESS:
        return (Piece(old),), (Piece(new),)
    before, after = [Piece(old[:1])], [Piece(new[:1])]
    for tag, start, end, other_start, other_end in matcher.get_opcodes():
        before.append(Piece("".join(one[start:end]), tag != "equal"))
        after.append(Piece("".join(other[other_start:other_end]), tag != "equal"))
    return tuple(each for each in before if each.text), tuple(each for each in after if each.text)


def _line(kind: LineKind, text: str) -> DiffLine:
    return DiffLine(kind, (Piece(text),))
