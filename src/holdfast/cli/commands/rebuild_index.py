"""Make the list of sessions and the search anew from the journals.

holdfast rebuild-index

Exit codes: 0 when it is done.
"""

import argparse

from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store
from holdfast.cli.terminal.console import Console
from holdfast.core import pluralize

WORKING = "reads the journals"


def configure(parser: argparse.ArgumentParser) -> None:
    """Nothing to choose but the form."""
    parser.add_argument("--json", action="store_true", help="the number of sessions as JSON on stdout")


async def run(arguments: argparse.Namespace) -> int:
    """Rebuild, and say how many there are."""
    console = Console()
    async with open_store() as (_, store):
        count = await store.rebuild_index()
    if arguments.json:
        console.json({"sessions": count})
    else:
        console.say(f"{pluralize(count, 'session')}; the search is made anew when it is next used")
    return exit_codes.OK
