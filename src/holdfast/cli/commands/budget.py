"""What a session may spend and has spent; and how to raise a limit.

holdfast budget                             the newest session
holdfast budget show NAME --json
holdfast budget add tokens=50000 cost_usd=1.50
holdfast budget add NAME calls=10

What is added goes to the session, to the turn that ran out, and to the purse it shares with its forks. A session that
another process holds is told, and heeds it before its next step.
"""

import argparse
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

from holdfast.cli import exit_codes
from holdfast.cli.open_store import chosen_session, open_store
from holdfast.cli.session_requests import send_control_request
from holdfast.cli.terminal.console import Console
from holdfast.core import DIMENSIONS, Limits, Nonconverged, SessionId
from holdfast.core.errors import InvalidInput
from holdfast.core.events import RecordedEvent, TurnEnded
from holdfast.core.projection import ReplayedHistory, without_rewound
from holdfast.gate import Budget, ControlRequests, RaiseBudget, TreeBudgetFile
from holdfast.session import Status
from holdfast.store import Home, SqliteStore

WORKING = "reads the journal"


def configure(parser: argparse.ArgumentParser) -> None:
    """Which session, and what to add."""
    parser.add_argument("action", nargs="?", choices=["show", "add"], default="show", help="default: show")
    parser.add_argument("session", nargs="?", help="id, prefix or name (default: the newest)")
    parser.add_argument("amounts", nargs="*", metavar="DIMENSION=N", help=", ".join(DIMENSIONS))
    parser.add_argument("--json", action="store_true", help="limits and spent as JSON")


async def run(arguments: argparse.Namespace) -> int:
    """Read the journal; with `add`, raise the limits. A turn that ran out can go on then."""
    console = Console()
    reference, amounts = arguments.session, arguments.amounts
    if reference is not None and "=" in reference:  # no session has a name like that
        reference, amounts = None, [reference, *amounts]
    async with open_store() as (home, store):
        session = await chosen_session(store, reference)
        if arguments.action == "add":
            console.say(await _add(home, store, session, amounts))
        recorded = await store.read(session)
    budget = Budget(ReplayedHistory(recorded), turn_limits=Limits())
    tree = _left_in_tree(home, recorded, session)
    waiting = ControlRequests(home.inbox(session)).count()
    if arguments.json:
        console.json(
            {
                "session": session,
                "limits": budget.limits,
                "spent": budget.spent,
                "left_in_tree": tree,
                "requests": waiting,
            }
        )
        return exit_codes.OK
    for dimension in DIMENSIONS:
        spent, limit = getattr(budget.spent, dimension), getattr(budget.limits, dimension)
        shown = "unknown" if spent is None else f"{spent:,.2f}" if isinstance(spent, float) else f"{spent:,}"
        left = f", {tree[dimension]:,} left with its forks" if dimension in tree else ""
        console.print(f"{dimension:<14} {shown:>12} of {'no limit' if limit is None else f'{limit:,}'}{left}")
    if waiting:
        console.say(f"{waiting} asked for and not heeded yet: the process that holds the session will")
    return exit_codes.OK


async def _add(home: Home, store: SqliteStore, session: SessionId, amounts: list[str]) -> str:
    """Raise the limits: in the journal, or where another process holds it, by asking that one. Tells what happened."""
    recorded = await store.read(session)
    added = _added(
        amounts, Budget(ReplayedHistory(recorded), turn_limits=Limits()).limits, _stopped_by(recorded)
    )
    if told := await send_control_request(home, store, session, RaiseBudget(added=added)):
        return told
    is_code = bool(turns := Status(ReplayedHistory(recorded)).turns) and turns[-1].is_code
    name = (await store.summary(session)).name or session
    return f"added; a turn that ran out goes on with: holdfast {'exec --session' if is_code else '-r'} {name}"


def _added(amounts: list[str], limits: Limits, stopped_by: str) -> Limits:
    if not amounts:
        raise InvalidInput("say what to add", hint="as in: holdfast budget add NAME tokens=50000")
    added: dict[str, int | float | Decimal] = {}
    for text in amounts:
        dimension, _, number = text.partition("=")
        if dimension not in _KINDS:
            raise InvalidInput(f"{dimension!r} is no dimension of a budget", hint=", ".join(DIMENSIONS))
        try:
            amount = Decimal(number)
        except InvalidOperation:
            amount = Decimal(0)
        if not amount.is_finite() or _KINDS[dimension](amount) <= 0:
            raise InvalidInput(f"{number!r} is nothing to add", hint=f"as in {dimension}=1000")
        if getattr(limits, dimension) is None and dimension != stopped_by:
            raise InvalidInput(
                f"{dimension} has no limit in this session, so there is nothing to add to",
                hint="holdfast budget show tells what has one",
            )
        added[dimension] = _KINDS[dimension](amount)
    return Limits(**added)  # type: ignore[arg-type]  # each bound has the type of its dimension


_KINDS: dict[str, type[int] | type[float] | type[Decimal]] = dict.fromkeys(DIMENSIONS, int) | {
    "cost_usd": Decimal,
    "wall_seconds": float,
}


def _stopped_by(recorded: Sequence[RecordedEvent]) -> str:
    """What the last turn ran out of: it may have been the limit of one turn, which no session's limits show."""
    ends = [entry.event for entry in without_rewound(recorded) if isinstance(entry.event, TurnEnded)]
    last = ends[-1].outcome if ends else None
    return last.dimension if isinstance(last, Nonconverged) and last.reason == "budget" else ""


def _left_in_tree(home: Home, recorded: Sequence[RecordedEvent], session: SessionId) -> dict[str, Decimal]:
    """What a session and its forks have left together; empty where it has none, or no limits."""
    purse = TreeBudgetFile(home.purse(recorded[0].session), session=session)
    if not purse.is_readable or purse.sessions() < 2:
        return {}
    rooms = {dimension: purse.remaining(dimension) for dimension in DIMENSIONS}
    return {dimension: room for dimension, room in rooms.items() if room is not None}
