"""A review of proposals, hunk by hunk: which one is looked at, what was decided, and what the screen shows of it.

Independent of the terminal; `diff_viewer` draws it and passes the keys on, and `line_review` asks line by line.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from holdfast.cli.terminal.wrap import cell_width, clip
from holdfast.cli.views.diff_lines import DiffLine, Piece, diff_lines
from holdfast.core import escape_invisible, pluralize
from holdfast.world import HunkDecision, Proposal, proposal_digest, unit_count

Choice = Literal["accept", "reject"]
NOTHING_APPLIED = "nothing was applied: everything is still staged"
"""Said when the person leaves a review, whatever was decided in it by then."""
DEFAULT_CELLS = 74
_TAB = "    "
_MARKS: dict[Choice | None, str] = {"accept": "[yes]", "reject": "[no] ", None: "[  ] "}


class Row(NamedTuple):
    """One row of the diff: its line, the mark of the hunk that begins here, and whether it belongs to the current hunk."""

    line: DiffLine
    mark: str
    is_current: bool


class _File:
    def __init__(self, proposal: Proposal) -> None:
        self.proposal = proposal
        self.count = unit_count(proposal)
        self.choices: dict[int, Choice] = {}
        self.whole = list(diff_lines(proposal))
        self._cells = 0
        self.lines: list[DiffLine] = []
        self.starts = [0]
        """The row at which each hunk begins."""

    def lay_out(self, cells: int) -> None:
        """Fold the lines to a width. Nothing is cut: what a person accepts was on the screen."""
        if cells != self._cells:
            self._cells = cells
            self.lines = [row for line in self.whole for row in _folded(line, cells)]
            starts = [place for place, line in enumerate(self.lines) if line.kind == "hunk"]
            self.starts = starts or [0]

    def end(self, number: int) -> int:
        """The row after the last one of a hunk."""
        return self.starts[number] if number < len(self.starts) else len(self.lines)


def _folded(line: DiffLine, cells: int) -> list[DiffLine]:
    """A line in rows of at most these cells."""
    rows: list[list[Piece]] = [[]]
    left = cells
    for piece in line.pieces:
        text = piece.text.replace("\t", _TAB)
        while text:
            # A letter that does not fit even an empty row takes one anyway.
            head = clip(text, left) or (text[0] if left == cells else "")
            if not head:
                rows, left = [*rows, []], cells
                continue
            rows[-1].append(Piece(head, piece.is_changed))
            left, text = left - cell_width(head), text[len(head) :]
    first, *rest = rows
    kind = "header" if line.kind == "hunk" else line.kind
    return [DiffLine(line.kind, tuple(first)), *(DiffLine(kind, tuple(row)) for row in rest)]


class HunkReview:
    """Some proposals, the hunk that is looked at, and the decisions so far."""

    def __init__(self, proposals: Sequence[Proposal]) -> None:
        self._files = [_File(each) for each in proposals]
        self._units = [(file, number) for file in self._files for number in range(1, file.count + 1)]
        self._at = 0
        self._first = 0
        """The first row that is shown."""
        self.lay_out(DEFAULT_CELLS)

    def lay_out(self, cells: int) -> None:
        """Fit the current file to the width of the screen."""
        self._cells = cells
        self._units[self._at][0].lay_out(cells)

    @property
    def title(self) -> str:
        """The file and the hunk that are looked at."""
        file, number = self._units[self._at]
        place = f"file {self._files.index(file) + 1} of {len(self._files)}"
        part = f", hunk {number} of {file.count}" if file.count > 1 else ""
        return f"{escape_invisible(file.proposal.path)}  {file.proposal.kind}  ({place}{part})"

    @property
    def summary(self) -> str:
        """How much was decided."""
        made = [choice for file in self._files for choice in file.choices.values()]
        accepted, rejected = made.count("accept"), made.count("reject")
        left = len(self._units) - len(made)
        return f"{accepted} accepted, {rejected} rejected, {left} {'stays' if left == 1 else 'stay'} staged"

    @property
    def question(self) -> str:
        """What applying the decisions would do."""
        made = [choice for file in self._files for choice in file.choices.values()]
        if not made:
            return "nothing is decided yet"
        return f"commit {pluralize(made.count('accept'), 'change')} and drop {made.count('reject')}?"

    @property
    def is_decided(self) -> bool:
        """Whether anything was accepted or rejected."""
        return any(file.choices for file in self._files)

    def rows(self, height: int) -> list[Row]:
        """The rows to show. The current hunk is on the screen, from its start as far as it fits."""
        file, number = self._units[self._at]
        start, end = file.starts[number - 1], file.end(number)
        self._first = max(0, min(self._first, len(file.lines) - height))
        shown: list[Row] = []
        for place, line in enumerate(file.lines[self._first : self._first + height], self._first):
            found = file.starts.index(place) + 1 if place in file.starts else None
            mark = _MARKS[file.choices.get(found)] if found is not None else ""
            shown.append(Row(line, mark, start <= place < end))
        return shown

    def current_lines(self) -> list[DiffLine]:
        """The whole lines of the current hunk; before the first one of a file, what is to be known about the file."""
        file, number = self._units[self._at]
        lines = file.whole
        starts = [place for place, line in enumerate(lines) if line.kind == "hunk"] or [0]
        end = starts[number] if number < len(starts) else len(lines)
        return lines[0 if number == 1 else starts[number - 1] : end]

    def decide_and_move(self, choice: Choice | None, *, is_whole_file: bool = False) -> bool:
        """Decide about the current hunk, or all from it on in its file, and look at the next; False after the last one."""
        file, number = self._units[self._at]
        last = file.count if is_whole_file else number
        for each in range(number, last + 1):
            self._set(file, each, choice)
        following = self._units.index((file, last)) + 1
        if following < len(self._units):
            self._at = following
        return following < len(self._units)

    def decide(self, choice: Choice | None, height: int) -> None:
        """Decide about the current hunk, and look at the next one that is open."""
        file, number = self._units[self._at]
        self._set(file, number, choice)
        if choice is not None:
            self.move(1, height)

    def decide_file(self, choice: Choice | None, height: int) -> None:
        """Decide about every hunk of the current file, and look at the next file."""
        file, _ = self._units[self._at]
        for number in range(1, file.count + 1):
            self._set(file, number, choice)
        if choice is not None:
            self.move_file(1, height)

    def move(self, steps: int, height: int) -> None:
        """Look at another hunk; stops at both ends."""
        self._look_at(max(0, min(self._at + steps, len(self._units) - 1)), height)

    def move_file(self, steps: int, height: int) -> None:
        """Look at the first hunk of another file; stops at both ends."""
        current = self._files.index(self._units[self._at][0])
        wanted = self._files[max(0, min(current + steps, len(self._files) - 1))]
        self._look_at(self._units.index((wanted, 1)), height)

    def scroll(self, rows: int) -> None:
        """Scroll in the current file."""
        self._first = max(0, self._first + rows)

    def decisions(self) -> tuple[HunkDecision, ...]:
        """What was decided, file by file."""
        return tuple(
            HunkDecision(
                path=file.proposal.path,
                shown=proposal_digest(file.proposal),
                accepted=tuple(sorted(n for n, choice in file.choices.items() if choice == "accept")),
                rejected=tuple(sorted(n for n, choice in file.choices.items() if choice == "reject")),
            )
            for file in self._files
            if file.choices
        )

    def _set(self, file: _File, number: int, choice: Choice | None) -> None:
        if choice is None:
            file.choices.pop(number, None)
        else:
            file.choices[number] = choice

    def _look_at(self, place: int, height: int) -> None:
        before = self._units[self._at][0]
        self._at = place
        file, number = self._units[place]
        file.lay_out(self._cells)
        # Above the first hunk stands what is to be known about the file: what runs it, and its name before.
        start, end = file.starts[number - 1] if number > 1 else 0, file.end(number)
        if file is not before:
            self._first = 0
        if start < self._first or end > self._first + height:
            # A hunk that fits is shown whole, one that does not from its start.
            self._first = start if end - start >= height or start < self._first else end - height
