"""Give a session another name, or none.

holdfast rename 2026-11-15 parser-rewrite
holdfast rename parser-rewrite --none

A name is kept in small letters, with - for spaces and signs, and goes wherever an id does. Exit codes: 1 when there is no such session,
another has the name, or a process has it open; 2 when it may not be a name.
"""

import argparse

from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store
from holdfast.cli.terminal.console import Console
from holdfast.core.errors import InvalidInput
from holdfast.core.events import SessionRenamed
from holdfast.store import chosen_name

WORKING = "renames"


def configure(parser: argparse.ArgumentParser) -> None:
    """Which session, and what name."""
    parser.add_argument("session", help="id, prefix or name")
    parser.add_argument("name", nargs="?", help="the new name, at most 64 characters")
    parser.add_argument("--none", action="store_true", help="take the name away")
    parser.add_argument("--json", action="store_true", help="the session as JSON on stdout")


async def run(arguments: argparse.Namespace) -> int:
    """Record the new name."""
    console = Console()
    if (arguments.name is None) == (not arguments.none):
        raise InvalidInput("give a new name, or --none", hint="like this: holdfast rename 2026-11 my-session")
    name = None if arguments.none else chosen_name(arguments.name)
    async with open_store() as (_, store):
        journal = await store.open(await store.find(arguments.session))
        await journal.append(SessionRenamed(name=name))
        await journal.release()
        summary = await store.summary(journal.session)
    if arguments.json:
        console.json(summary)
    else:
        console.say(
            f"{summary.id} is now called {summary.name}" if summary.name else f"{summary.id} has no name"
        )
    return exit_codes.OK
