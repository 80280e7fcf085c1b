"""Show the limits and spending of a session, or raise a limit.

holdfast budget                             the newest session
holdfast budget show NAME --json
holdfast budget add tokens=50k usd=1.50
holdfast budget add NAME time=5m

The amount is added to the session, to the turn that reached its limit, and to the budget it shares with its forks. If another
process holds the session, that process applies it before its next step.
"""

import argparse
from collections.abc import Sequence

from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store, resolve_session
from holdfast.cli.option_types import budget_increase, budget_lines
from holdfast.cli.terminal.console import Console
from holdfast.core import BUDGET_WORDS, Limits, Nonconverged, SessionId, pluralize
from holdfast.core.events import RecordedEvent, TurnEnded
from holdfast.core.projection import ReplayedHistory, without_rewound
from holdfast.gate import Budget, RaiseBudget
from holdfast.services import send_control_request, view_budget
from holdfast.session import Status
from holdfast.store import Home, Store

PROGRESS = "reading the journal"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("action", nargs="?", choices=["show", "add"], default="show", help="default: show")
    parser.add_argument(
        "session", nargs="?", help="id, prefix, last four characters or name (default: the newest)"
    )
    parser.add_argument("amounts", nargs="*", metavar="DIMENSION=N", help=", ".join(BUDGET_WORDS))
    parser.add_argument("--json", action="store_true", help="print limits and spending as JSON")


async def run(arguments: argparse.Namespace) -> int:
    """Read the journal; with `add`, raise the limits. A turn that reached its limit can then be resumed."""
    console = Console()
    reference, amounts = arguments.session, arguments.amounts
    if reference is not None and "=" in reference:  # no session has a name like that
        reference, amounts = None, [reference, *amounts]
    async with open_store() as (home, store):
        session = await resolve_session(store, reference)
        if arguments.action == "add":
            console.say(await _add(home, store, session, amounts))
        budget = await view_budget(home, store, session)
    if arguments.json:
        console.json(budget)
        return exit_codes.OK
    tree = budget.left_in_tree
    for dimension, line in budget_lines(budget.spent, budget.limits).items():
        left = f", {tree[dimension]:,} left including its forks" if dimension in tree else ""
        console.print(f"{line}{left}")
    if budget.paid != budget.spent:
        console.say("turns that were rewound cost too; with them the session has spent:")
        for line in budget_lines(budget.paid, Limits()).values():
            console.print(line)
    if budget.requests:
        console.say(
            f"{pluralize(budget.requests, 'request')} not applied yet; the process that holds the session will do it"
        )
    return exit_codes.OK


async def _add(home: Home, store: Store, session: SessionId, amounts: list[str]) -> str:
    """Raise the limits in the journal or, if another process holds it, by a control request. Returns what happened."""
    recorded = await store.read(session)
    limits = Budget(ReplayedHistory(recorded), turn_limits=Limits()).limits
    added = budget_increase(amounts, limits, stopped_by=_stopped_by(recorded))
    if message := await send_control_request(home, store, session, RaiseBudget(added=added)):
        return message
    status = Status(ReplayedHistory(recorded))
    name = (await store.summary(session)).name or session
    if status.lifecycle not in ("open", "paused"):
        return f"added for its forks; the session was {status.lifecycle}; continue with: holdfast fork {name}"
    is_code = bool(status.turns) and status.turns[-1].is_code
    return f"added; resume a turn that reached its limit with: holdfast {'exec --session' if is_code else '-r'} {name}"


def _stopped_by(recorded: Sequence[RecordedEvent]) -> str:
    """The dimension that the last turn ran out of: it may be a limit of one turn, which the session's limits do not show."""
    ends = [entry.event for entry in without_rewound(recorded) if isinstance(entry.event, TurnEnded)]
    last = ends[-1].outcome if ends else None
    return last.dimension if isinstance(last, Nonconverged) and last.reason == "budget" else ""
