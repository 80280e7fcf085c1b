"""The approval question on the screen: the call, the reason, other waiting calls, and the possible answers."""

from collections.abc import Sequence

from holdfast.cli.approvals.text import COLUMNS, fit_lines
from holdfast.cli.terminal.console import Console
from holdfast.cli.terminal.wrap import cell_width
from holdfast.core import Escalation, is_question
from holdfast.core.approval_text import describe_effect, describe_facts, describe_time_left
from holdfast.services import call_lines
from holdfast.session import Session

LINES_BELOW_CALL = 9
"""The approximate number of lines after the call: the reason and the possible answers."""


def show_escalation(
    console: Console, escalation: Escalation, session: Session | None = None, *, now_ms: int
) -> bool:
    """Show the effect, the exact call and the reason; returns whether the call was shown in full."""
    size = console.screen_size
    lines, is_whole = fit_lines(
        call_lines(escalation.call, None if session is None else session.workspace),
        COLUMNS if size is None else size.columns,
    )
    is_whole = is_whole and escalation.call.large is None  # a preview is not the call
    console.say()
    console.say(f"  {describe_effect(escalation)}", "ask", folds=True)
    for line in lines:
        console.say(f"    {line}")
    if is_question(escalation):
        return is_whole
    if _scrolls_off(lines, console):
        console.say(f"  {describe_effect(escalation)}", "ask", folds=True)
    facts = describe_facts(escalation, columns=None if size is None else size.columns)
    for line in [*facts, *describe_time_left(escalation, now_ms)]:
        console.say(f"  {line}", folds=True)
    return is_whole


def _scrolls_off(lines: Sequence[str], console: Console) -> bool:
    """Whether the line above the call scrolls off the screen before the question is complete."""
    if console.screen_size is None:
        return False
    height = sum(1 + cell_width(f"    {line}") // console.screen_size.columns for line in lines)
    return height + LINES_BELOW_CALL > console.screen_size.lines


def show_waiting(console: Console, waiting: Sequence[Escalation], current: Escalation) -> None:
    """List the waiting calls if there are several, numbered as in `/approve N` and `/deny N`."""
    if len(waiting) < 2:
        return
    console.say()
    console.say(f"  {len(waiting)} calls wait for you; this question is about the one marked *", "ask")
    for number, each in enumerate(waiting, start=1):
        mark = "*" if each.id == current.id else " "
        console.say(f"  {mark} {number}  {describe_effect(each)}", folds=True)


def show_choices(
    console: Console, offered: Sequence[tuple[str, str]], *, how: str, is_question: bool = False
) -> None:
    """Show the possible answers in one line."""
    keys = "  ".join(f"[{key}] {words}" for key, words in offered)
    commands = "" if is_question else ", or /approve or /deny REASON"
    console.say(f"  {keys}", "strong", folds=True)
    console.say(f"  {how}{commands}; Enter alone does nothing", "ask", folds=True)
