"""What was done, what it cost, and why it was judged as it was."""

from holdfast.cli.approvals.text import cost_so_far
from holdfast.cli.chat.slash.contract import ChatContext
from holdfast.cli.option_types import budget_increase, budget_lines
from holdfast.core import Nonconverged, pluralize
from holdfast.core.errors import InvalidInput

LOG_LINES = 100
"""As many as can be scrolled back to; `/logs all` shows the others."""


async def logs(talk: ChatContext, rest: str) -> None:
    """What happened, event by event."""
    lines = talk.log.lines()
    shown = lines if rest == "all" else lines[-LOG_LINES:]
    if left_out := len(lines) - len(shown):
        talk.screen.say(f"  {pluralize(left_out, 'line')} before these: /logs all", "dim")
    for line in shown:
        talk.screen.say(f"  {line}", folds=True)
    if not lines:
        talk.screen.say("  nothing has happened yet")


async def budget(talk: ChatContext, rest: str) -> None:
    """Show what may be spent and was; `add` raises limits, and a turn that ran out resumes."""
    budget = talk.session.budget
    verb, *amounts = rest.split() or ["show"]
    if verb == "add":
        turns = talk.session.history()
        last = turns[-1].outcome if turns else None
        stopped_by = last.dimension if isinstance(last, Nonconverged) and last.reason == "budget" else ""
        added = budget_increase(amounts, budget.limits, stopped_by=stopped_by)
        await talk.session.raise_budget(budget.limits.raised(added), added=added)
        talk.resume()
    elif verb != "show":
        raise InvalidInput(f"/budget has no {verb!r}", hint="/budget, or /budget add usd=1 tokens=50k")
    for line in budget_lines(budget.spent, budget.limits).values():
        talk.screen.say(f"  {line}")


async def cost(talk: ChatContext, rest: str) -> None:
    """What was spent, in a line."""
    talk.screen.say(f"  {cost_so_far(talk.session)}")


async def why(talk: ChatContext, rest: str) -> None:
    """Why a call was judged as it was."""
    from holdfast.cli.commands.why import explain

    entries = talk.session.audit()
    wanted = [entry for entry in entries if entry.call == rest] if rest else entries[-1:]
    if not wanted:
        raise InvalidInput("there is no such call", hint="/logs numbers them")
    for line in explain(wanted[0]):
        talk.screen.say(f"  {line}", folds=True)
