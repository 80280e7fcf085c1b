"""What a session may spend and has spent; and how to raise a limit.

holdfast budget                             the newest session
holdfast budget show NAME --json
holdfast budget add NAME tokens=50000 cost_usd=1.50
"""

import argparse
from decimal import Decimal, InvalidOperation

from holdfast.cli import exits
from holdfast.cli.console import Console
from holdfast.cli.storage import chosen_session, opened_store
from holdfast.core import DIMENSIONS, PERSON, Limits, SessionId
from holdfast.core.errors import InvalidInput
from holdfast.core.events import BudgetRaised
from holdfast.core.fold import Reading
from holdfast.gate import Budget
from holdfast.store import EmbeddedStore


def configure(parser: argparse.ArgumentParser) -> None:
    """Which session, and what to add."""
    parser.add_argument("action", nargs="?", choices=["show", "add"], default="show")
    parser.add_argument("session", nargs="?", help="id, prefix or name (default: the newest)")
    parser.add_argument("amounts", nargs="*", metavar="DIMENSION=N", help=", ".join(DIMENSIONS))
    parser.add_argument("--json", action="store_true", help="limits and spent as JSON")


async def run(arguments: argparse.Namespace) -> int:
    """Read the journal; with `add`, record higher limits. A turn that ran out then goes on with `holdfast -c`."""
    console = Console()
    async with opened_store() as (_, store):
        session = await chosen_session(store, arguments.session)
        if arguments.action == "add":
            await _raise(store, session, arguments.amounts)
        budget = Budget(Reading(await store.read(session)), turn_limits=Limits())
    if arguments.json:
        console.json({"session": session, "limits": budget.limits, "spent": budget.spent})
        return exits.OK
    for dimension in DIMENSIONS:
        spent, limit = getattr(budget.spent, dimension), getattr(budget.limits, dimension)
        shown = "unknown" if spent is None else f"{spent:,.2f}" if isinstance(spent, float) else f"{spent:,}"
        console.print(f"{dimension:<14} {shown:>12} of {'no limit' if limit is None else f'{limit:,}'}")
    return exits.OK


async def _raise(store: EmbeddedStore, session: SessionId, amounts: list[str]) -> None:
    journal = await store.open(session)
    try:
        raised = _raised(Budget(journal, turn_limits=Limits()).limits, amounts)
        await journal.append(BudgetRaised(limits=raised, principal=PERSON))
    finally:
        await journal.release()


def _raised(limits: Limits, amounts: list[str]) -> Limits:
    if not amounts:
        raise InvalidInput("say what to add", hint="as in: holdfast budget add NAME tokens=50000")
    bounds = {dimension: getattr(limits, dimension) for dimension in DIMENSIONS}
    for text in amounts:
        dimension, _, number = text.partition("=")
        if dimension not in bounds:
            raise InvalidInput(f"{dimension!r} is no dimension of a budget", hint=", ".join(DIMENSIONS))
        try:
            added = Decimal(number)
        except InvalidOperation:
            added = Decimal(0)
        if not added.is_finite() or added <= 0:
            raise InvalidInput(f"{number!r} is nothing to add", hint=f"as in {dimension}=1000")
        if bounds[dimension] is None:
            raise InvalidInput(f"{dimension} has no limit in this session, there is nothing to add to")
        kind = type(bounds[dimension])
        bounds[dimension] = kind(Decimal(str(bounds[dimension])) + added)
    return Limits(**bounds)
