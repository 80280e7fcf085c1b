"""Verify that journals are complete and unchanged: no event was changed, removed, moved or added.

holdfast verify my-session
holdfast verify --all

Each problem names the event: changed, missing, unreadable or added. Exit codes: 0 when every journal is OK; 1 when one is
not, or there is no such session.
"""

import argparse
from collections.abc import Sequence

from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store, resolve_session
from holdfast.cli.terminal.console import Console
from holdfast.core import pluralize
from holdfast.store import Inspection

PROGRESS = "verifying the journals"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument(
        "session", nargs="?", help="id, prefix, last four characters or name (default: the newest)"
    )
    parser.add_argument("--all", action="store_true", help="verify every session")
    parser.add_argument("--json", action="store_true", help="print a JSON array")


async def run(arguments: argparse.Namespace) -> int:
    """Verify the journals and print the problems."""
    console = Console()
    async with open_store(only_reads=True) as (_, store):
        if arguments.all:
            found = list(await store.verify_all())
        else:
            found = [await store.verify(await resolve_session(store, arguments.session))]
    if arguments.json:
        console.json(found)
        return _code(found)
    if not found:
        console.say("there are no sessions yet")
    for one in found:
        if one.is_intact:
            console.show(
                f"OK       {one.session}  {pluralize(one.events, 'event')}, last hash {one.last_hash}",
                folds=True,
            )
        for problem in one.problems:
            through = f" to {problem.seq + problem.count - 1}" if problem.count > 1 else ""
            console.print(f"{problem.what:<8} {one.session}  event {problem.seq}{through}")
        for lost in one.lost:
            console.show(f"lost     {one.session}  the object {lost}", folds=True)
    return _code(found)


def _code(found: Sequence[Inspection]) -> int:
    return exit_codes.OK if all(one.is_intact for one in found) else exit_codes.ERROR
