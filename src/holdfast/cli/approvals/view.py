"""The approval question on the screen: the call, the reason, other waiting calls, and the possible answers."""

from collections.abc import Sequence

from holdfast.cli.approvals.text import COLUMNS, fit_lines
from holdfast.cli.terminal.console import Console, Tone
from holdfast.cli.terminal.wrap import cell_width, ellipsize, fold
from holdfast.core import Escalation, is_question
from holdfast.core.approval_text import describe_effect, describe_facts, describe_time_left
from holdfast.session import Session

LINES_OF_ANSWERS = 4
"""The rows of an empty line, the keys, how to answer, and the cursor."""
LINES_BELOW_CALL = 9
"""The approximate number of lines after the call: the reason and the possible answers."""


def show_escalation(
    console: Console,
    escalation: Escalation,
    session: Session | None = None,
    *,
    now_ms: int,
    waiting: Sequence[Escalation] = (),
) -> bool:
    """Show the effect, the exact call and the reason, below the other calls that wait, as far as they fit the screen.

    Returns whether the call was shown in full.
    """
    from holdfast.services import call_lines  # loaded beside the first prompt, not before it

    size = console.screen_size
    lines, is_whole = fit_lines(
        call_lines(escalation.call, None if session is None else session.workspace),
        COLUMNS if size is None else size.columns,
    )
    is_whole = is_whole and escalation.call.large is None  # a preview is not the call
    effect = f"  {describe_effect(escalation)}"
    question: list[tuple[str, Tone, bool]] = [(effect, "ask", True)]
    question += [(f"    {line}", "plain", False) for line in lines]
    if not is_question(escalation):
        if _scrolls_off(lines, console):
            question.append((effect, "ask", True))
        facts = describe_facts(escalation, columns=None if size is None else size.columns)
        facts += describe_time_left(escalation, now_ms)
        question += [(f"  {line}", "plain", True) for line in facts]
    rows = sum(
        _rows(fold(text, size.columns) if folds else text, size.columns) if size is not None else 1
        for text, _, folds in question
    )
    room = None if size is None else size.lines - rows - LINES_OF_ANSWERS
    _show_waiting(console, waiting, escalation, room)
    for text, tone, folds in question:
        console.say(text, tone, folds=folds)
    return is_whole


def _rows(text: str, columns: int) -> int:
    return sum(max(1, -(-cell_width(line) // columns)) for line in text.split("\n"))


def _scrolls_off(lines: Sequence[str], console: Console) -> bool:
    """Whether the line above the call scrolls off the screen before the question is complete."""
    if console.screen_size is None:
        return False
    height = sum(1 + cell_width(f"    {line}") // console.screen_size.columns for line in lines)
    return height + LINES_BELOW_CALL > console.screen_size.lines


def _show_waiting(
    console: Console, waiting: Sequence[Escalation], current: Escalation, room: int | None
) -> None:
    """List the waiting calls if there are several, numbered as in `/approve N` and `/deny N`, in at most `room` rows."""
    if len(waiting) < 2:
        console.say()
        return
    size = console.screen_size
    numbered = list(enumerate(waiting, start=1))
    others = [each for each in numbered if each[1].id != current.id]
    fits_all = room is None or len(waiting) + 1 <= room
    shown = len(others) if room is None or fits_all else room - 3  # the title, this call, and how many more
    console.say()
    if shown < 1:
        return  # the line below the keys says how many wait
    hidden = {number for number, _ in others[shown:]}
    console.say(f"  {len(waiting)} calls wait for you; this question is about the one marked *", "ask")
    for number, each in numbered:
        mark = "*" if each.id == current.id else " "
        line = f"  {mark} {number}  {describe_effect(each)}"
        if number not in hidden:
            console.say(line if size is None else ellipsize(line, size.columns))
    if hidden:
        console.say(f"    and {len(hidden)} more: holdfast waiting")


def show_choices(
    console: Console,
    offered: Sequence[tuple[str, str]],
    *,
    how: str,
    has_commands: bool = True,
    number: int = 1,
    waiting: int = 1,
) -> None:
    """Show the possible answers in one line."""
    keys = "  ".join(f"[{key}] {words}" for key, words in offered)
    commands = ", or /approve or /deny REASON" if has_commands else ""
    console.say(f"  {keys}", "strong", folds=True)
    if waiting > 1:
        ways = f"call {number} of {waiting} that wait: /approve N, or holdfast waiting"
        console.say(f"  {how}; {ways}", "ask", folds=True)
        return
    console.say(f"  {how}{commands}; Enter alone does nothing", "ask", folds=True)
