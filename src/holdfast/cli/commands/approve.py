"""Say yes to a call that waits for you, from any terminal: once, or for longer.

holdfast waiting                  what waits, and what a standing yes would cover
holdfast approve                  the only one that waits
holdfast approve ID --for times=3

A standing yes holds for this `turn`, this `session`, so many `times` (this call is the first) or `minutes`. One for always
is given where the question is put, in a conversation.
"""

import argparse

from holdfast.cli.approvals.remote import answer, configure_answer
from holdfast.cli.approvals.text import parse_amount
from holdfast.core import Response, Scope
from holdfast.core.errors import InvalidInput
from holdfast.gate import MAX_AMOUNT

WORKING = "tells it"


def configure(parser: argparse.ArgumentParser) -> None:
    """Which call."""
    configure_answer(parser)
    parser.add_argument(
        "--for", dest="scope", metavar="SCOPE", help="turn, session, times=N or minutes=N (default: once)"
    )


async def run(arguments: argparse.Namespace) -> int:
    """Record the yes."""
    scope, amount = _scope(arguments.scope or "once")
    response = Response(verdict="approve", scope=scope, amount=amount, reason=arguments.reason)
    return await answer(arguments, response)


def _scope(text: str) -> tuple[Scope, int | None]:
    match text.partition("="):
        case ("once" | "turn" | "session") as scope, "", _:
            return scope, None
        case ("times" | "minutes") as scope, _, number if (amount := parse_amount(number)) is not None:
            return scope, amount
    raise InvalidInput(
        f"{text!r} is no scope of a yes", hint=f"turn, session, times=N or minutes=N, up to {MAX_AMOUNT:,}"
    )
