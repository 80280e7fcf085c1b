"""Delete a session permanently: its journal, its folder, contents that no other session uses, and what you typed in it.

holdfast delete my-session           asks first
holdfast delete my-session --yes

A tombstone records that and when it was deleted. Of a team's session, the program's own record and queued messages are deleted
too. If the database was once damaged, its old files stay in `damaged-…/`; the command names them. Exit codes: 1 when there is no
such session or a process has it open; 2 when no terminal is attached to ask at; 3 when you decline.
"""

import argparse

from holdfast.cli import exit_codes
from holdfast.cli.delete_session import delete_session
from holdfast.cli.open_store import open_store
from holdfast.cli.prompts import confirm
from holdfast.cli.terminal.console import Console
from holdfast.cli.terminal.progress import ProgressIndicator
from holdfast.cli.views.session_table import first_words, sentence
from holdfast.core import SystemClock
from holdfast.core.errors import InvalidInput


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("session", help="id, prefix, last four characters or name")
    parser.add_argument("-y", "--yes", action="store_true", help="delete without asking")
    parser.add_argument("--json", action="store_true", help="print the deleted session as JSON")


async def run(arguments: argparse.Namespace) -> int:
    """Ask for confirmation and delete the session."""
    console = Console()
    async with open_store() as (home, store):
        summary = await store.summary(await store.find(arguments.session))
        if not arguments.yes:
            if not console.is_interactive:
                raise InvalidInput("no terminal is attached to ask at", hint="--yes deletes without asking")
            console.say(sentence(summary, SystemClock().now_ms(), home), folds=True)
            if summary.first_words:
                console.say(f"first message: {first_words(summary)}", folds=True)
            if not await confirm("Delete it permanently?", console):
                console.say("nothing was deleted")
                return exit_codes.DENIED
        with ProgressIndicator(lambda: "deleting"):
            await delete_session(store, summary.id, home=home)
    if arguments.json:
        console.json(summary)
    else:
        console.say(f"deleted {summary.id}")
    for kept in sorted(home.root.glob("damaged-*")):
        console.say(
            f"{str(kept)!r} has the files of a database that was damaged, which may contain this session; "
            "remove that folder when nothing else is missing",
            folds=True,
        )
    return exit_codes.OK
