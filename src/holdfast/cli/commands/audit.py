"""List every call of a session with its decision and result, including refused calls.

holdfast audit                    the newest session
holdfast audit NAME --turn 3      one turn of another session
holdfast audit --op world.write --json
"""

import argparse
import sys

from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store, resolve_session
from holdfast.cli.std_streams import output_columns
from holdfast.cli.terminal.console import Console
from holdfast.cli.views.tables import audit_table
from holdfast.gate import audit_stats, audit_view
from holdfast.services import audit_csv

PROGRESS = "reading the journal"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument(
        "session", nargs="?", help="id, prefix, last four characters or name (default: the newest)"
    )
    parser.add_argument("--turn", type=int, metavar="N", help="show only this turn")
    parser.add_argument("--op", metavar="OPERATION", help="show only this operation, such as world.write")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print a JSON array")
    form.add_argument("--csv", action="store_true", help="print comma-separated values")
    form.add_argument("--stats", action="store_true", help="print counts by operation and result, and tokens")


async def run(arguments: argparse.Namespace) -> int:
    """Print the audit view of the journal."""
    console = Console()
    async with open_store(only_reads=True) as (_, store):
        recorded = await store.read(await resolve_session(store, arguments.session))
    if arguments.stats:
        console.json(audit_stats(recorded))
        return exit_codes.OK
    entries = audit_view(recorded, turn=arguments.turn, operation=arguments.op)
    if arguments.json:
        console.json(entries)
    elif arguments.csv:
        sys.stdout.write(audit_csv(entries))
    else:
        width = output_columns(default=160)
        for line in audit_table(entries, width=width):
            console.print(line)
    return exit_codes.OK
