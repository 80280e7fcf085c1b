"""Approve a call that waits for approval, from any terminal: once, or for longer.

holdfast waiting                  the waiting calls, and what a saved approval would cover
holdfast approve                  approve the only waiting call
holdfast approve ID --for times=3
holdfast approve ID --for session --offer 2

A saved approval (grant) is valid for this `turn`, this `session`, a number of `times` (including this call) or `minutes`. Approve for
always at the question itself, in a chat.
"""

import argparse

from holdfast.cli.approvals.remote import answer, configure_answer
from holdfast.cli.approvals.text import parse_amount
from holdfast.cli.option_types import at_least_one
from holdfast.core import Response, Scope
from holdfast.core.errors import InvalidInput
from holdfast.gate import MAX_AMOUNT

PROGRESS = "sending the answer"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    configure_answer(parser)
    parser.add_argument(
        "--offer",
        type=at_least_one,
        metavar="N",
        help="what a saved approval covers: the number of an offer in `holdfast waiting` (default: exactly this call)",
    )
    parser.add_argument(
        "--for", dest="scope", metavar="SCOPE", help="turn, session, times=N or minutes=N (default: once)"
    )


async def run(arguments: argparse.Namespace) -> int:
    """Approve the call."""
    scope, amount = _scope(arguments.scope or "once")
    if arguments.offer is not None and scope == "once":
        raise InvalidInput(
            "an offer is a saved approval", hint="add how long it lasts, such as --for session"
        )
    response = Response(
        verdict="approve", scope=scope, amount=amount, offer=arguments.offer, reason=arguments.reason
    )
    return await answer(arguments, response)


def _scope(text: str) -> tuple[Scope, int | None]:
    match text.partition("="):
        case ("once" | "turn" | "session") as scope, "", _:
            return scope, None
        case ("times" | "minutes") as scope, _, number if (amount := parse_amount(number)) is not None:
            return scope, amount
    raise InvalidInput(
        f"{text!r} is not a valid scope",
        hint=f"use turn, session, times=N or minutes=N, up to {MAX_AMOUNT:,}",
    )
