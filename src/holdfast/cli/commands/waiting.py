"""List the calls that wait for your approval, in all sessions, each one exactly as it would be made.

holdfast waiting
holdfast approve ID
"""

import argparse
from pathlib import Path

from holdfast.cli import exit_codes
from holdfast.cli.approvals.remote import show_external_requests, waiting
from holdfast.cli.approvals.text import exact_call
from holdfast.cli.open_store import open_store
from holdfast.cli.terminal.console import Console
from holdfast.core import SystemClock, escape_invisible, is_question
from holdfast.core.approval_text import (
    describe_effect,
    describe_offers,
    describe_reason,
    describe_wait,
    runs_of,
    seconds_left,
)
from holdfast.gate import grant_description

PROGRESS = "looking for waiting calls"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("--session", help="only in this session: id, prefix or name")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="requests of another program in DIR")
    parser.add_argument("--json", action="store_true", help="print a JSON array")


async def run(arguments: argparse.Namespace) -> int:
    """Print every open escalation."""
    console = Console()
    if arguments.folder is not None:
        show_external_requests(arguments.folder, console, is_json=arguments.json)
        return exit_codes.OK
    async with open_store(only_reads=True) as (_, store):
        found = await waiting(store, arguments.session)
        names = {session: (await store.summary(session)).name or session for session, _ in found}
    now_ms = SystemClock().now_ms()
    if arguments.json:
        console.json(
            [
                {
                    "session": session,
                    "escalation": escalation,
                    "runs_when": runs_of(escalation),
                    "seconds_left": seconds_left(escalation, now_ms),
                }
                for session, escalation in found
            ]
        )
        return exit_codes.OK
    if not found:
        console.say("no calls wait for approval")
    for session, escalation in found:
        wait = describe_wait(escalation, now_ms)
        console.show(f"{escalation.id}  in session {escape_invisible(names[session])}, {wait}", "strong")
        console.show(f"  {describe_effect(escalation)}", folds=True)
        # In full, unlike everywhere else: what is cut off here would be approved unseen.
        for line in exact_call(escalation.call):
            console.print(f"    {line}")
        if is_question(escalation):
            console.show(f"  answer with: holdfast answer {escalation.id} TEXT", folds=True)
            continue
        console.show(f"  reason: {describe_reason(escalation)}", folds=True)
        for number, words in list(enumerate(describe_offers(escalation), 1))[1:]:
            console.show(f"  with --offer {number}  {words}", folds=True)
        if rule := grant_description(escalation):
            console.show(f"  a saved approval would cover: {escape_invisible(rule)}", folds=True)
    if any(not is_question(each) for _, each in found):
        which = "" if len(found) == 1 else " ID"
        console.say(
            f"answer with: holdfast approve{which}, or holdfast deny{which} --reason TEXT", "dim", folds=True
        )
    return exit_codes.OK
