"""What was done, what it cost, and why it was judged as it was."""

from holdfast.cli.approvals.text import describe_cost
from holdfast.cli.chat.slash.contract import ChatContext
from holdfast.core import DIMENSIONS, pluralize
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
    """What may be spent and was."""
    budget = talk.session.budget
    for dimension in DIMENSIONS:
        spent, limit = getattr(budget.spent, dimension), getattr(budget.limits, dimension)
        shown = "unknown" if spent is None else f"{spent:,.2f}" if isinstance(spent, float) else f"{spent:,}"
        talk.screen.say(f"  {dimension:<14} {shown:>12} of {'no limit' if limit is None else f'{limit:,}'}")


async def cost(talk: ChatContext, rest: str) -> None:
    """What was spent, in a line."""
    talk.screen.say(f"  {describe_cost(talk.session)}")


async def why(talk: ChatContext, rest: str) -> None:
    """Why a call was judged as it was."""
    from holdfast.cli.commands.why import explain

    entries = talk.session.audit()
    wanted = [entry for entry in entries if entry.call == rest] if rest else entries[-1:]
    if not wanted:
        raise InvalidInput("there is no such call", hint="/logs numbers them")
    for line in explain(wanted[0]):
        talk.screen.say(f"  {line}", folds=True)
