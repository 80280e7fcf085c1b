"""Write a session into one portable file, with its whole history and the program that checks it.

holdfast export my-session                     into SESSION-ID.zip in this folder
holdfast export my-session -o backup.zip
holdfast export --all -o backup                every session, each into a file in a new folder

The file holds verify.py: `python verify.py backup.zip` checks it with nothing but Python. A damaged session is exported as
far as it can be read. Exit codes: 1 when it is damaged or there is none; 2 when the file
is there already.
"""

import argparse
from pathlib import Path

from holdfast.cli import exit_codes
from holdfast.cli.open_store import chosen_session, open_store
from holdfast.cli.terminal.console import Console
from holdfast.core import SessionId, SystemClock, pluralize
from holdfast.core.errors import InvalidInput, SessionNotFound
from holdfast.store import Store, private_folder

WORKING = "writes the session"


def configure(parser: argparse.ArgumentParser) -> None:
    """Which session, and where to."""
    parser.add_argument("session", nargs="?", help="id, prefix or name (default: the newest)")
    parser.add_argument("--all", action="store_true", help="every session; the output is a folder then")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="default: SESSION-ID.zip, with --all: holdfast-backup",
    )
    parser.add_argument("--json", action="store_true", help="the manifest as JSON on stdout")


async def run(arguments: argparse.Namespace) -> int:
    """Write the file, or all of them."""
    console = Console()
    is_whole = True
    manifests = []
    async with open_store() as (_, store):
        for session, path in await _targets(store, arguments):
            manifest = await store.export_session(session, path, now_ms=SystemClock().now_ms())
            manifests.append(manifest)
            if not arguments.json:
                console.print(str(path))
                console.say(
                    f"{pluralize(manifest.events, 'event')}, last hash {manifest.last_hash or 'none'}",
                    folds=True,
                )
            if manifest.problems:
                is_whole = False
                console.say(f"events are missing or damaged: holdfast verify {session} names them", "bad")
            if manifest.lost:
                is_whole = False
                console.say(f"contents of {session} are missing or damaged: {len(manifest.lost)}", "bad")
    if arguments.json:
        console.json(manifests if arguments.all else manifests[0])
    return exit_codes.OK if is_whole else exit_codes.ERROR


async def _targets(store: Store, arguments: argparse.Namespace) -> list[tuple[SessionId, Path]]:
    if not arguments.all:
        session = await chosen_session(store, arguments.session)
        return [(session, arguments.output or Path(f"{session}.zip"))]
    if arguments.session is not None:
        raise InvalidInput("one session or all of them", hint="leave the session away, or --all")
    folder: Path = arguments.output or Path("holdfast-backup")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(f"{str(folder)!r} holds something already", hint="choose a new folder with -o")
    sessions = await store.sessions()
    if not sessions:
        raise SessionNotFound("there are no sessions yet", hint="start one with: holdfast")
    private_folder(folder)
    return [(line.id, folder / f"{line.id}.zip") for line in sessions]
