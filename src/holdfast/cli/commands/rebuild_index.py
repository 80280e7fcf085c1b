"""Rebuild the session list and the search index from the journals.

holdfast rebuild-index

Exit codes: 0 success.
"""

import argparse

from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store
from holdfast.cli.terminal.console import Console
from holdfast.core import pluralize

PROGRESS = "reading the journals"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("--json", action="store_true", help="print the number of sessions as JSON")


async def run(arguments: argparse.Namespace) -> int:
    """Rebuild the index and print the number of sessions."""
    console = Console()
    async with open_store() as (_, store):
        count = await store.rebuild_index()
    if arguments.json:
        console.json({"sessions": count})
    else:
        console.say(f"{pluralize(count, 'session')}; the search index is rebuilt at its next use")
    return exit_codes.OK
