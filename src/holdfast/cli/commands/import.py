"""Take in a session from a portable file. It is checked first; grants that somebody else gave are revoked.

holdfast import backup.zip

Exit codes: 1 when it was tampered with or the session is here already; 2 when it is no exported session.
"""

import argparse
from pathlib import Path

from holdfast.cli import exits
from holdfast.cli.console import Console
from holdfast.cli.storage import opened_store
from holdfast.core import SystemClock
from holdfast.store import import_session

WORKING = "checks the file"


def configure(parser: argparse.ArgumentParser) -> None:
    """Which file."""
    parser.add_argument("file", type=Path, help="what `holdfast export` wrote")
    parser.add_argument("--json", action="store_true", help="the session as JSON on stdout")


async def run(arguments: argparse.Namespace) -> int:
    """Check it and take it in."""
    console = Console()
    async with opened_store() as (_, store):
        session = await import_session(store, arguments.file, now_ms=SystemClock().now_ms())
        summary = await store.summary(session)
    if arguments.json:
        console.json(summary)
    else:
        console.print(session)
        console.say(f"imported, with {summary.turns} turns; go on with: holdfast -r {session}")
    return exits.OK
