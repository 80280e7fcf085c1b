"""Delete a session for good: its journal, its folder, and contents that nothing else mentions.

holdfast delete my-session           asks first
holdfast delete my-session --yes

A tombstone stays that says that it was deleted, and when. Exit codes: 1 when there is no such session or a process has it open;
2 when nobody is there to be asked; 3 when you said no.
"""

import argparse

from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store
from holdfast.cli.prompts import confirm
from holdfast.cli.terminal.console import Console
from holdfast.cli.terminal.progress import ProgressIndicator
from holdfast.cli.views.session_table import first_words, sentence
from holdfast.core import SystemClock
from holdfast.core.errors import InvalidInput


def configure(parser: argparse.ArgumentParser) -> None:
    """Which session."""
    parser.add_argument("session", help="id, prefix or name")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument("--json", action="store_true", help="what was deleted as JSON on stdout")


async def run(arguments: argparse.Namespace) -> int:
    """Ask, and delete."""
    console = Console()
    async with open_store() as (_, store):
        summary = await store.summary(await store.find(arguments.session))
        if not arguments.yes:
            if not console.is_interactive:
                raise InvalidInput("nobody is here to be asked", hint="say --yes to delete without asking")
            console.say(sentence(summary, SystemClock().now_ms()), folds=True)
            if summary.first_words:
                console.say(f"it began with: {first_words(summary)}", folds=True)
            if not await confirm("delete it for good?", console):
                console.say("nothing was deleted")
                return exit_codes.DENIED
        with ProgressIndicator(lambda: "deletes it"):
            await store.delete(summary.id)
    if arguments.json:
        console.json(summary)
    else:
        console.say(f"deleted {summary.id}")
    return exit_codes.OK
