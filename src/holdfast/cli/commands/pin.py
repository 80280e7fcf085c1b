"""Pin a session, so that prune never deletes it, or unpin it.

holdfast pin my-session
holdfast pin my-session --off

Exit codes: 1 when there is no such session or a process has it open.
"""

import argparse

from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store
from holdfast.cli.terminal.console import Console
from holdfast.core.events import SessionPinned

PROGRESS = "pinning"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("session", help="id, prefix, last four characters or name")
    parser.add_argument("--off", action="store_true", help="unpin it")
    parser.add_argument("--json", action="store_true", help="print the session as JSON")


async def run(arguments: argparse.Namespace) -> int:
    """Pin or unpin the session."""
    console = Console()
    async with open_store() as (_, store):
        journal = await store.open(await store.find(arguments.session))
        await journal.append(SessionPinned(is_pinned=not arguments.off))
        await journal.release()
        summary = await store.summary(journal.session)
    if arguments.json:
        console.json(summary)
    else:
        console.say(f"{summary.id} is {'pinned' if summary.is_pinned else 'no longer pinned'}")
    return exit_codes.OK
