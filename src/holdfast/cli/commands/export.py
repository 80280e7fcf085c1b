"""Write a session into one portable file, with its whole history and the program that checks it.

holdfast export my-session                     into SESSION-ID.zip in this folder
holdfast export my-session -o backup.zip
python verify.py backup.zip                    the check, with nothing but Python (verify.py is in the file)

A damaged session is exported as far as it can be read. Exit codes: 1 when it is damaged or there is none; 2 when the file
is there already.
"""

import argparse
from pathlib import Path

from holdfast.cli import exits
from holdfast.cli.console import Console
from holdfast.cli.storage import chosen_session, opened_store
from holdfast.core import SystemClock
from holdfast.store import export_session

WORKING = "writes the session"


def configure(parser: argparse.ArgumentParser) -> None:
    """Which session, and where to."""
    parser.add_argument("session", nargs="?", help="id, prefix or name (default: the newest)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: SESSION-ID.zip")
    parser.add_argument("--json", action="store_true", help="the manifest as JSON on stdout")


async def run(arguments: argparse.Namespace) -> int:
    """Write the file."""
    console = Console()
    async with opened_store() as (_, store):
        session = await chosen_session(store, arguments.session)
        path = arguments.output or Path(f"{session}.zip")
        manifest = await export_session(store, session, path, now_ms=SystemClock().now_ms())
    if arguments.json:
        console.json(manifest)
    else:
        console.print(str(path))
        console.say(f"{manifest.events} events, last hash {manifest.last_hash}")
    if manifest.problems:
        console.say(f"{len(manifest.problems)} events are missing or damaged", "bad")
    return exits.ERROR if manifest.problems else exits.OK
