"""List sessions, newest first.

holdfast sessions                  the newest 50
holdfast sessions --here           those that were started in this folder
holdfast sessions --limit 5 --json

A * marks a pinned session. The state says what it does or did: ready, processing, waiting 3m (a call waits for your answer since then),
paused, completed, aborted, failed, damaged. Exit codes: 0 also when there are none.
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

WORKING = "reads the list"


def configure(parser: argparse.ArgumentParser) -> None:
    """How many, of which folder, and in what form."""
    parser.add_argument("--limit", type=at_least_one, default=50, metavar="N", help="at most N (default 50)")
    parser.add_argument("--here", action="store_true", help="only those that were started in this folder")
    parser.add_argument("--json", action="store_true", help="a JSON array on stdout")


async def run(arguments: argparse.Namespace) -> int:
    """Read the list and print it."""
    console = Console()
    async with open_store() as (_, store):
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
    # Who hears the lines one by one is better served by lines that say what their numbers are.
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() and not is_linear() else None
    if width is not None:
        console.show(heading(width), "dim")
    for line in found:
        console.print(row(line, now_ms, width=width))
    if len(some) > len(found):
        console.say(f"these are the newest {len(found)}; --limit N shows more", "dim")
    return exit_codes.OK
