"""What waits for you, in all sessions, each call exactly as it would be made.

holdfast waiting
holdfast approve ID
"""

import argparse
from pathlib import Path

from holdfast.cli import exit_codes
from holdfast.cli.approvals.remote import show_external_requests, waiting
from holdfast.cli.approvals.text import describe_effect, describe_reason, exact_call
from holdfast.cli.open_store import open_store
from holdfast.cli.terminal.console import Console
from holdfast.core import escape_invisible
from holdfast.gate import grant_description

WORKING = "looks for what waits"


def configure(parser: argparse.ArgumentParser) -> None:
    """Where to look."""
    parser.add_argument("--session", help="only in this session: id, prefix or name")
    parser.add_argument(
        "--folder", type=Path, metavar="DIR", help="what waits by files in DIR, of another program"
    )
    parser.add_argument("--json", action="store_true", help="a JSON array on stdout")


async def run(arguments: argparse.Namespace) -> int:
    """List every open escalation."""
    console = Console()
    if arguments.folder is not None:
        show_external_requests(arguments.folder, console, is_json=arguments.json)
        return exit_codes.OK
    async with open_store() as (_, store):
        found = await waiting(store, arguments.session)
        names = {session: (await store.summary(session)).name or session for session, _ in found}
    if arguments.json:
        console.json([{"session": session, "escalation": escalation} for session, escalation in found])
        return exit_codes.OK
    if not found:
        console.say("nothing waits for you")
    for session, escalation in found:
        console.show(f"{escalation.id}  in session {escape_invisible(names[session])}", "strong")
        console.show(f"  {describe_effect(escalation)}", folds=True)
        # Whole, unlike everywhere else: what is cut off here would be approved unseen.
        for line in exact_call(escalation.call):
            console.print(f"    {line}")
        console.show(f"  why it asks:  {describe_reason(escalation)}", folds=True)
        if rule := grant_description(escalation):
            console.show(f"  a standing yes covers: {escape_invisible(rule)}", folds=True)
    if found:
        which = "" if len(found) == 1 else " ID"
        console.say(
            f"answer with: holdfast approve{which}, or holdfast deny{which} --reason WORDS", "dim", folds=True
        )
    return exit_codes.OK
