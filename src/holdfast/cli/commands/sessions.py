"""List sessions, newest first.

holdfast sessions                  the newest 50
holdfast sessions --here           only those started in this folder
holdfast sessions --limit 5 --json

A * marks a pinned session. The state is ready, processing, waiting 3m (a call has waited for approval that long), paused,
completed, aborted, failed or damaged. Exit codes: 0 also when there are no sessions.
"""

import argparse
import os
import shutil
import sys

from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store
from holdfast.cli.option_types import at_least_one
from holdfast.cli.terminal.console import Console
from holdfast.cli.terminal.progress import is_linear
from holdfast.cli.views.session_table import heading, row
from holdfast.core import SystemClock

PROGRESS = "reading the session list"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument(
        "--limit", type=at_least_one, default=50, metavar="N", help="show at most N (default 50)"
    )
    parser.add_argument("--here", action="store_true", help="only sessions started in this folder")
    parser.add_argument("--json", action="store_true", help="print a JSON array")


async def run(arguments: argparse.Namespace) -> int:
    """Print the session list."""
    console = Console()
    async with open_store(only_reads=True) as (_, store):
        folder = os.getcwd() if arguments.here else None
        some = await store.sessions(limit=arguments.limit + 1, folder=folder)
    found = some[: arguments.limit]
    if arguments.json:
        console.json(found)
        return exit_codes.OK
    if not found:
        none = "no session was started in this folder" if arguments.here else "no sessions yet"
        console.say(f"{none}; start one with: holdfast")
        return exit_codes.OK
    now_ms = SystemClock().now_ms()
    # A screen reader reads line by line, so there every line names its values.
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() and not is_linear() else None
    if width is not None:
        console.show(heading(width), "dim")
    for line in found:
        console.print(row(line, now_ms, width=width))
    if len(some) > len(found):
        console.say(f"showing the newest {len(found)}; --limit N shows more", "dim")
    return exit_codes.OK
