"""Hunks of a proposal: read from its unified diff, applied one by one, and decided by a person.

A hunk has the number of its place in the diff, from 1. A proposal without hunks (a binary or empty file, a change of the mode) is
decided as a whole, as number 1.
"""

import re
from collections.abc import Collection, Sequence
from itertools import pairwise

from holdfast.core import Value, digest
from holdfast.core.errors import CommitConflict, InvalidInput
from holdfast.world.staging.proposals import Proposal

_HEADER = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_NEWLINE = "\\ No newline at end of file"


class Hunk(Value):
    """One part of a diff: where it is in the old file, and its lines as the diff has them."""

    number: int
    start: int
    """The first line in the old file, counted from 0."""
    old: tuple[str, ...]
    """The lines that it replaces, context included, each with its line end."""
    new: tuple[str, ...]
    lines: tuple[str, ...]
    """The header and the lines of the diff, without line ends."""


class HunkDecision(Value):
    """What a person decided about the hunks of one proposal. What is in neither list stays staged."""

    path: str
    shown: str
    """The digest of the proposal that the person saw (`proposal_digest`)."""
    accepted: tuple[int, ...] = ()
    rejected: tuple[int, ...] = ()


def proposal_digest(proposal: Proposal) -> str:
    """A digest of a proposal, to tell whether what a person saw is still what would be committed."""
    return digest(proposal)


def hunks_of(proposal: Proposal) -> tuple[Hunk, ...]:
    """The hunks of a proposal, in order; empty if it can only be decided as a whole."""
    # Not splitlines, which also splits at form feeds.
    lines = [] if proposal.is_binary else proposal.diff.split("\n")[:-1]
    starts = [place for place, line in enumerate(lines) if _is_header(lines, place)]
    return tuple(
        _hunk(number, lines[start:end])
        for number, (start, end) in enumerate(pairwise([*starts, len(lines)]), 1)
    )


def unit_count(proposal: Proposal) -> int:
    """How many parts of a proposal can be decided one by one."""
    return max(1, len(hunks_of(proposal)))


def apply_hunks(before: str, hunks: Sequence[Hunk], chosen: Collection[int]) -> str:
    """The text with the chosen hunks applied. Raises CommitConflict if it does not have the lines that they replace."""
    lines = _split_lines(before)
    made: list[str] = []
    place = 0
    for hunk in hunks:
        if hunk.number not in chosen:
            continue
        if tuple(lines[hunk.start : hunk.start + len(hunk.old)]) != hunk.old:
            raise CommitConflict("the file is not the one that the diff was made from", paths=())
        made += [*lines[place : hunk.start], *hunk.new]
        place = hunk.start + len(hunk.old)
    return "".join([*made, *lines[place:]])


def check_decision(decision: HunkDecision, proposal: Proposal) -> None:
    """Raise CommitConflict if the proposal changed since it was shown, InvalidInput if a number is not one of its hunks."""
    if decision.shown != proposal_digest(proposal):
        raise CommitConflict(
            f"the proposal for {proposal.path} changed since it was shown; nothing was committed",
            paths=(proposal.path,),
            hint="look at it again",
        )
    numbers = [*decision.accepted, *decision.rejected]
    if len(set(numbers)) != len(numbers) or not set(numbers) <= set(range(1, unit_count(proposal) + 1)):
        raise InvalidInput(f"{proposal.path} has the hunks 1 to {unit_count(proposal)}, each decided once")


def _is_header(lines: Sequence[str], place: int) -> bool:
    """Whether a line begins a hunk. Lines of a hunk begin with a space, `+`, `-` or a backslash, so none looks like it."""
    return lines[place].startswith("@@ ") and _HEADER.match(lines[place]) is not None


def _hunk(number: int, lines: Sequence[str]) -> Hunk:
    found = _HEADER.match(lines[0])
    assert found is not None, "only headers begin a hunk"
    start, length = int(found[1]), 1 if found[2] is None else int(found[2])
    old: list[str] = []
    new: list[str] = []
    for place, line in enumerate(lines[1:], 1):
        is_last = place + 1 < len(lines) and lines[place + 1] == _NO_NEWLINE
        text = line[1:] + ("" if is_last else "\n")
        if line[:1] in (" ", "-"):
            old.append(text)
        if line[:1] in (" ", "+"):
            new.append(text)
    # A range without lines is named by the line before it.
    return Hunk(
        number=number,
        start=start - 1 if length else start,
        old=tuple(old),
        new=tuple(new),
        lines=tuple(lines),
    )


def _split_lines(text: str) -> list[str]:
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
