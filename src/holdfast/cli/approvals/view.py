"""A question on the screen: the call, why it asks, what else waits, and what may be chosen."""

from collections.abc import Sequence

from holdfast.cli.approvals.text import (
    GRANT_DIGITS,
    describe_cost,
    describe_effect,
    describe_provenance,
    describe_reason,
    describe_undo,
    exact_call,
    fit_lines,
    is_question,
)
from holdfast.cli.terminal.console import Console
from holdfast.cli.terminal.wrap import cell_width
from holdfast.core import Escalation, escape_invisible
from holdfast.gate import grant_description
from holdfast.session import Session

LINES_BELOW_CALL = 20
"""About so many lines follow the call: why it asks, and what may be chosen."""


def show_escalation(console: Console, escalation: Escalation, session: Session | None = None) -> bool:
    """What will happen, the exact call, and why it asks; returns whether all of it could be shown."""
    lines, is_whole = fit_lines(exact_call(escalation.call, session))
    console.say()
    console.say(f"  {describe_effect(escalation)}", "ask", folds=True)
    for line in lines:
        console.say(f"    {line}")
    if is_question(escalation):
        return is_whole
    if _scrolls_off(lines, console):
        console.say(f"  {describe_effect(escalation)}", "ask", folds=True)
    console.say(f"  why it asks:   {describe_reason(escalation)}", folds=True)
    console.say(f"  values from:   {describe_provenance(escalation)}", folds=True)
    console.say(f"  can be undone: {describe_undo(escalation)}", folds=True)
    if session is not None:
        console.say(f"  spent so far:  {describe_cost(session)}", folds=True)
    return is_whole


def _scrolls_off(lines: Sequence[str], console: Console) -> bool:
    """Whether what stands above these lines is no longer on the screen when everything below them is."""
    if console.screen_size is None:
        return False
    height = sum(1 + cell_width(f"    {line}") // console.screen_size.columns for line in lines)
    return height + LINES_BELOW_CALL > console.screen_size.lines


def show_waiting(console: Console, waiting: Sequence[Escalation], current: Escalation) -> None:
    """Everything that waits, numbered as `/approve N` and `/deny N` count, where it is more than one thing."""
    if len(waiting) < 2:
        return
    console.say()
    console.say(f"  {len(waiting)} calls wait for you; this is about the one marked *", "ask")
    for number, each in enumerate(waiting, start=1):
        mark = "*" if each.id == current.id else " "
        console.say(f"  {mark} {number}  {describe_effect(each)}", folds=True)


def show_choices(
    console: Console, escalation: Escalation, offered: Sequence[tuple[str, str]], *, how: str
) -> None:
    """What may be said, digit by digit, and what a standing yes would cover."""
    standing = [digit for digit, _ in offered if digit in GRANT_DIGITS]
    if standing:
        rule = escape_invisible(grant_description(escalation))
        console.say(f"  a standing yes ({', '.join(standing)}) covers: {rule}", folds=True)
    for digit, words in offered:
        console.say(f"    {digit}  {words}")
    commands = "" if is_question(escalation) else ", or type /approve or /deny REASON"
    console.say(f"  {how}{commands}; Enter alone does nothing", "ask", folds=True)
