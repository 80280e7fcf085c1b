"""Show what sessions used: cost, tokens, calls, commands and prompts.

holdfast usage                       the last 30 days, by day
holdfast usage --by model --days 7
holdfast usage --session NAME --json
"""

import argparse
import csv
import sys

from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store, resolve_session
from holdfast.cli.option_types import at_least_one
from holdfast.cli.std_streams import output_columns
from holdfast.cli.terminal.console import Console
from holdfast.cli.views.usage_table import usage_lines
from holdfast.core import SystemClock
from holdfast.services import USAGE_GROUPS, total_usage, usage

PROGRESS = "adding up"
_DAY_MS = 24 * 60 * 60 * 1000


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument(
        "--by", choices=USAGE_GROUPS, default="day", help="what a row stands for (default: day)"
    )
    parser.add_argument(
        "--days", type=at_least_one, default=30, metavar="N", help="how many days back (default: 30)"
    )
    parser.add_argument("--session", help="only this session, by id, prefix, last four characters or name")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the rows and the total as JSON")
    form.add_argument("--csv", action="store_true", help="print comma-separated values")


async def run(arguments: argparse.Namespace) -> int:
    """Add up the events and print them."""
    console = Console()
    since_ms = SystemClock().now_ms() - arguments.days * _DAY_MS
    async with open_store(only_reads=True) as (_, store):
        session = await resolve_session(store, arguments.session) if arguments.session else None
        rows = await usage(store, by=arguments.by, since_ms=since_ms, session=session)
    if arguments.json:
        console.json({"by": arguments.by, "days": arguments.days, "rows": rows, "total": total_usage(rows)})
    elif arguments.csv:
        writer = csv.writer(sys.stdout)
        fields = total_usage(()).__struct_fields__
        writer.writerow(fields)
        writer.writerows([getattr(row, field) for field in fields] for row in rows)
    else:
        for line in usage_lines(rows, by=arguments.by, width=output_columns(default=80)):
            console.show(line)
    return exit_codes.OK
