"""The lifecycle commands: pause, resume, abort and complete a session that no process has open."""

import argparse
from collections.abc import Awaitable, Callable

from holdfast.app import Runtime
from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store, resolve_session
from holdfast.cli.terminal.console import Console
from holdfast.session import Session


def configure_lifecycle(parser: argparse.ArgumentParser, *, has_reason: bool) -> None:
    """Define the options."""
    parser.add_argument("session", help="id, prefix, last four characters or name")
    if has_reason:
        parser.add_argument("--reason", default="", metavar="TEXT", help="why, for the record")
    parser.add_argument("--json", action="store_true", help="print the session as JSON")


async def change_lifecycle(
    arguments: argparse.Namespace, change: Callable[[Session], Awaitable[None]], done: str
) -> int:
    """Open the session without a model, change it, and report."""
    console = Console()
    async with open_store() as (_, store):
        name = await resolve_session(store, arguments.session)
    runtime = await Runtime.start()
    try:
        session = await runtime.resume(name, needs_model=False)
        await change(session)
        await session.close()
        summary = await runtime.store.summary(session.id)
    finally:
        await runtime.close()
    if arguments.json:
        console.json(summary)
    else:
        console.say(f"{summary.name or summary.id} {done}")
    return exit_codes.OK
