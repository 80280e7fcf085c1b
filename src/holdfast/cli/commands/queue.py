"""Show the jobs of workers by queue: how many wait, run or failed, and how long the oldest one waits.

holdfast queue --store URL
holdfast queue --store URL --json
holdfast queue --store URL --retry           let workers try the failed jobs again

A job only says that a session has something to do. A job that fails because of an error in Holdfast is kept, and is not retried by itself.
"""

import argparse

from holdfast.cli import exit_codes
from holdfast.cli.shared_store import add_store_option, chosen_store
from holdfast.cli.terminal.console import Console
from holdfast.core import pluralize
from holdfast.worker import find_dispatch

PROGRESS = "looking at the queue"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    add_store_option(parser)
    parser.add_argument("--retry", action="store_true", help="let workers try the failed jobs again")
    parser.add_argument("--json", action="store_true", help="print a JSON array")


async def run(arguments: argparse.Namespace) -> int:
    """Print one line for each queue."""
    console = Console()
    dispatch = await find_dispatch(chosen_store(arguments))
    if arguments.retry:
        console.say(f"given again: {pluralize(await dispatch.retry_failed(), 'job')}")
    found = await dispatch.queues()
    if arguments.json:
        console.json(found)
        return exit_codes.OK
    if not found:
        console.say("no jobs")
    for queue in found:
        oldest = f", the oldest for {queue.oldest_seconds:.0f} s" if queue.waiting else ""
        console.print(
            f"{queue.name}: {queue.waiting} waiting{oldest}, {queue.running} running, {queue.failed} failed"
        )
    return exit_codes.OK
