"""What was asked, judged and done in a session, call by call; refusals included."""

import argparse
import os

from holdfast.cli import exits
from holdfast.cli.audit_table import audit_table
from holdfast.cli.console import Console
from holdfast.core import SystemClock
from holdfast.core.errors import SessionNotFound
from holdfast.gate import audit_view
from holdfast.store import EmbeddedStore, Home


def configure(parser: argparse.ArgumentParser) -> None:
    """Which session, and which of its calls."""
    parser.add_argument("session", nargs="?", help="id, prefix or name (default: the newest)")
    parser.add_argument("--turn", type=int, metavar="N", help="only this turn")
    parser.add_argument("--op", metavar="OPERATION", help="only this operation, such as world.write")
    parser.add_argument("--json", action="store_true", help="a JSON array on stdout")


async def run(arguments: argparse.Namespace) -> int:
    """Read the journal and print its audit view."""
    console = Console()
    home = Home.default()
    home.prepare()
    store = await EmbeddedStore.start(home, clock=SystemClock())
    try:
        if arguments.session is None:
            newest = await store.sessions(limit=1)
            if not newest:
                raise SessionNotFound("there are no sessions yet", hint="start one with: holdfast")
            session = newest[0].id
        else:
            session = await store.find(arguments.session)
        entries = audit_view(await store.read(session), turn=arguments.turn, operation=arguments.op)
    finally:
        await store.close()
    if arguments.json:
        console.json(entries)
        return exits.OK
    width = os.get_terminal_size().columns if console.is_interactive else 160
    for line in audit_table(entries, width=width):
        console.print(line)
    return exits.OK
