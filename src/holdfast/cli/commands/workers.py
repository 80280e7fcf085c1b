"""List the processes that have a store in PostgreSQL open: workers, web servers and chats, on every machine.

holdfast workers --store URL
holdfast workers --store URL --json

A process that was not seen for some seconds, by the clock of the database, is dead and is not listed: others take over its sessions.
"""

import argparse

from holdfast.cli import exit_codes
from holdfast.cli.shared_store import add_store_option, chosen_store
from holdfast.cli.terminal.console import Console
from holdfast.core import pluralize
from holdfast.store import WorkerPresence, store_status

PROGRESS = "looking for workers"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    add_store_option(parser)
    parser.add_argument("--json", action="store_true", help="print a JSON array")


async def run(arguments: argparse.Namespace) -> int:
    """Print one line for each process."""
    console = Console()
    found = (await store_status(chosen_store(arguments))).workers
    if arguments.json:
        console.json(found)
        return exit_codes.OK
    if not found:
        console.say("no process has this store open; start one with: holdfast worker --store URL")
    for worker in found:
        console.print(describe_worker(worker))
    return exit_codes.OK


def describe_worker(worker: WorkerPresence) -> str:
    """One line about a process."""
    holds = pluralize(worker.sessions, "session")
    seen = f"seen {worker.seen_seconds:.1f} s ago"
    return f"{worker.host} {worker.pid}  {worker.role or 'other'}  {worker.version}  {holds}  {seen}"
