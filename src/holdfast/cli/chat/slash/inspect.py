"""Slash commands to inspect a session: log, budget, cost and decisions."""

from holdfast.cli.approvals.text import describe_cost
from holdfast.cli.chat.slash.contract import ChatContext
from holdfast.core import DIMENSIONS, pluralize
from holdfast.core.errors import InvalidInput

LOG_LINES = 100
"""As many lines as most terminals keep; `/logs all` shows the others."""


async def logs(chat: ChatContext, rest: str) -> None:
    """Show the log, one event per line."""
    lines = chat.log.lines()
    shown = lines if rest == "all" else lines[-LOG_LINES:]
    if left_out := len(lines) - len(shown):
        chat.screen.say(f"  {pluralize(left_out, 'line')} omitted; show them with /logs all", "dim")
    for line in shown:
        chat.screen.say(f"  {line}", folds=True)
    if not lines:
        chat.screen.say("  the log is empty")


async def budget(chat: ChatContext, rest: str) -> None:
    """Show limits and spending."""
    budget = chat.session.budget
    for dimension in DIMENSIONS:
        spent, limit = getattr(budget.spent, dimension), getattr(budget.limits, dimension)
        shown = "unknown" if spent is None else f"{spent:,.2f}" if isinstance(spent, float) else f"{spent:,}"
        chat.screen.say(f"  {dimension:<14} {shown:>12} of {'no limit' if limit is None else f'{limit:,}'}")


async def cost(chat: ChatContext, rest: str) -> None:
    """Show spending in one line."""
    chat.screen.say(f"  {describe_cost(chat.session)}")


async def why(chat: ChatContext, rest: str) -> None:
    """Explain the decision about a call."""
    from holdfast.cli.commands.why import explain

    entries = chat.session.audit()
    wanted = [entry for entry in entries if entry.call == rest] if rest else entries[-1:]
    if not wanted:
        raise InvalidInput("there is no such call", hint="/logs shows the call numbers")
    for line in explain(wanted[0]):
        chat.screen.say(f"  {line}", folds=True)
