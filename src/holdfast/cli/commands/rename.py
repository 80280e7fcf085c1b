"""Rename a session, or remove its name.

holdfast rename 2026-11-15 parser-rewrite
holdfast rename parser-rewrite --none

A name is stored in lower case, with - for spaces and punctuation, and can be used wherever an id can. Exit codes: 1 when there
is no such session, another session has the name, or a process has it open; 2 when the name is invalid.
"""

import argparse

from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store
from holdfast.cli.terminal.console import Console
from holdfast.core.errors import InvalidInput
from holdfast.core.events import SessionRenamed
from holdfast.store import chosen_name, shortened_note

PROGRESS = "renaming"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("session", help="id, prefix, last four characters or name")
    parser.add_argument("name", nargs="?", help="the new name; more than 64 characters are cut off")
    parser.add_argument("--none", action="store_true", help="remove the name")
    parser.add_argument("--json", action="store_true", help="print the session as JSON")


async def run(arguments: argparse.Namespace) -> int:
    """Record the new name."""
    console = Console()
    if (arguments.name is None) == (not arguments.none):
        raise InvalidInput(
            "give a new name, or --none", hint="for example: holdfast rename 2026-11 my-session"
        )
    name = None if arguments.none else chosen_name(arguments.name)
    async with open_store() as (_, store):
        journal = await store.open(await store.find(arguments.session))
        await journal.append(SessionRenamed(name=name))
        await journal.release()
        summary = await store.summary(journal.session)
    if note := shortened_note(arguments.name):
        console.say(f"note: {note}", "ask")
    if arguments.json:
        console.json(summary)
    else:
        console.say(
            f"{summary.id} is now called {summary.name}" if summary.name else f"{summary.id} has no name"
        )
    return exit_codes.OK
