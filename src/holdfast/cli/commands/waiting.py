"""List the calls that wait for your approval, in all sessions, each one exactly as it would be made.

holdfast waiting
holdfast approve ID
holdfast waiting --store URL      in the sessions of a store in PostgreSQL
"""

import argparse
from pathlib import Path

from holdfast.cli import exit_codes
from holdfast.cli.approvals.remote import show_external_requests
from holdfast.cli.open_store import open_store
from holdfast.cli.shared_store import add_store_option
from holdfast.cli.terminal.console import Console
from holdfast.core import SystemClock, escape_invisible
from holdfast.core.approval_text import describe_wait
from holdfast.services import waiting

PROGRESS = "looking for waiting calls"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("--session", help="only in this session: id, prefix, last four characters or name")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="requests of another program in DIR")
    add_store_option(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON array")


async def run(arguments: argparse.Namespace) -> int:
    """Print every open escalation."""
    console = Console()
    if arguments.folder is not None:
        show_external_requests(arguments.folder, console, is_json=arguments.json)
        return exit_codes.OK
    now_ms = SystemClock().now_ms()
    async with open_store(only_reads=True, url=arguments.store) as (_, store):
        found = await waiting(store, arguments.session, now_ms=now_ms)
    if arguments.json:
        console.json(found)
        return exit_codes.OK
    if not found:
        console.say("no calls wait for approval")
    for each in found:
        escalation = each.escalation
        name = escape_invisible(each.name or each.session)
        wait = describe_wait(escalation, now_ms)
        console.show(f"{escalation.id}  in session {name}, {wait}", "strong")
        console.show(f"  {each.effect}", folds=True)
        # In full, unlike everywhere else: what is cut off here would be approved unseen.
        for line in each.call:
            console.print(f"    {line}")
        if each.is_question:
            console.show(f"  answer with: holdfast answer {escalation.id} TEXT", folds=True)
            continue
        console.show(f"  reason:        {each.reason}", folds=True)
        console.show(f"  values from:   {each.values_from}", folds=True)
        console.show(f"  can be undone: {each.undo}", folds=True)
        for number, words in list(enumerate(each.offers, 1))[1:]:
            console.show(f"  with --offer {number}  {words}", folds=True)
        if each.covers:
            console.show(f"  a saved approval would cover: {each.covers}", folds=True)
    if any(not each.is_question for each in found):
        which = "" if len(found) == 1 else " ID"
        console.say(
            f"answer with: holdfast approve{which}, or holdfast deny{which} --reason TEXT", "dim", folds=True
        )
    return exit_codes.OK
