"""Show the turns, model requests, calls, waits and restore points of a session over time.

holdfast timeline                 the newest session
holdfast timeline NAME --turn 3   one turn
holdfast timeline NAME --json
"""

import argparse

from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store, resolve_session
from holdfast.cli.std_streams import output_columns
from holdfast.cli.terminal.console import Console
from holdfast.cli.views.timeline_chart import timeline_lines
from holdfast.services import Timeline, timeline_of

PROGRESS = "reading the journal"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument(
        "session", nargs="?", help="id, prefix, last four characters or name (default: the newest)"
    )
    parser.add_argument("--turn", type=int, metavar="N", help="show only this turn")
    parser.add_argument("--json", action="store_true", help="print the entries as JSON")


async def run(arguments: argparse.Namespace) -> int:
    """Print the timeline of the journal."""
    console = Console()
    async with open_store(only_reads=True) as (_, store):
        whole = timeline_of(await store.read(await resolve_session(store, arguments.session)))
    chosen = Timeline(entries=tuple(each for each in whole.entries if arguments.turn in (None, each.turn)))
    if arguments.json:
        console.json(chosen.entries)
    else:
        for line in timeline_lines(chosen, width=output_columns(default=80)):
            console.show(line)
    return exit_codes.OK
