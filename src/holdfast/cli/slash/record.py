"""What was done, what it cost, and why it was judged as it was."""

import shutil

from holdfast.cli.approval_text import cost_so_far
from holdfast.cli.console import visible
from holdfast.cli.slash.contract import Talking
from holdfast.core import DIMENSIONS
from holdfast.core.errors import InvalidInput


async def logs(talk: Talking, rest: str) -> None:
    """Every call, and what was worth telling."""
    from holdfast.cli.audit_table import audit_table

    for line in audit_table(talk.session.audit(), width=shutil.get_terminal_size().columns - 2):
        talk.screen.say(f"  {line}")
    for note in talk.session.diagnostics():
        talk.screen.say(f"  {note.code}: {visible(note.text)}", folds=True)


async def budget(talk: Talking, rest: str) -> None:
    """What may be spent and was."""
    budget = talk.session.budget
    for dimension in DIMENSIONS:
        spent, limit = getattr(budget.spent, dimension), getattr(budget.limits, dimension)
        shown = "unknown" if spent is None else f"{spent:,.2f}" if isinstance(spent, float) else f"{spent:,}"
        talk.screen.say(f"  {dimension:<14} {shown:>12} of {'no limit' if limit is None else f'{limit:,}'}")


async def cost(talk: Talking, rest: str) -> None:
    """What was spent, in a line."""
    talk.screen.say(f"  {cost_so_far(talk.session)}")


async def why(talk: Talking, rest: str) -> None:
    """Why a call was judged as it was."""
    from holdfast.cli.commands.why import explain

    entries = talk.session.audit()
    wanted = [entry for entry in entries if entry.call == rest] if rest else entries[-1:]
    if not wanted:
        raise InvalidInput("there is no such call", hint="/logs numbers them")
    for line in explain(wanted[0]):
        talk.screen.say(f"  {line}", folds=True)
