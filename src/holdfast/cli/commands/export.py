"""Write a session to one portable file, with its whole history and the program that verifies it.

holdfast export my-session                     to SESSION-ID.zip in this folder
holdfast export my-session -o backup.zip
holdfast export --all -o backup                every session, each to its own file in a new folder

holdfast export --public-key                   the line that lets another data directory of yours trust these files

The file is signed by this data directory, so that an import here keeps its labels. It contains verify.py: `python verify.py backup.zip`
verifies it with nothing but Python. A damaged session is exported as far as it can be read, without a signature. Exit codes: 1 when it is
damaged or does not exist; 2 when the file already exists.
"""

import argparse
from pathlib import Path

from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store, resolve_session
from holdfast.cli.terminal.console import Console
from holdfast.core import SessionId, SystemClock, pluralize
from holdfast.core.errors import InvalidInput, SessionNotFound
from holdfast.store import Home, HomeSignatures, Store, export_signed, private_folder

PROGRESS = "writing the session"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument(
        "session", nargs="?", help="id, prefix, last four characters or name (default: the newest)"
    )
    parser.add_argument(
        "--all", action="store_true", help="export every session; the output is then a folder"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="default: SESSION-ID.zip, or holdfast-backup with --all",
    )
    parser.add_argument(
        "--public-key",
        action="store_true",
        help="print the public key that the files are signed with, and export nothing",
    )
    parser.add_argument("--json", action="store_true", help="print the manifest as JSON")


async def run(arguments: argparse.Namespace) -> int:
    """Write the file or files."""
    console = Console()
    if arguments.public_key:
        return _print_public_key(arguments, console)
    is_complete = True
    manifests = []
    async with open_store(only_reads=True) as (home, store):
        for session, path in await _targets(store, arguments):
            exported = await export_signed(store, home, session, path, now_ms=SystemClock().now_ms())
            manifest = exported.manifest
            manifests.append(manifest)
            if not arguments.json:
                console.print(str(path))
                console.say(
                    f"{pluralize(manifest.events, 'event')}, last hash {manifest.last_hash or 'none'}",
                    folds=True,
                )
            if manifest.problems:
                is_complete = False
                console.say(
                    f"events are missing or damaged; list them with: holdfast verify {session}", "bad"
                )
            if manifest.lost:
                is_complete = False
                console.say(f"{len(manifest.lost)} contents of {session} are missing or damaged", "bad")
            if exported.warning:
                console.say(exported.warning, "bad")
    if arguments.json:
        console.json(manifests if arguments.all else manifests[0])
    return exit_codes.OK if is_complete else exit_codes.ERROR


def _print_public_key(arguments: argparse.Namespace, console: Console) -> int:
    if arguments.session is not None or arguments.all or arguments.output is not None:
        raise InvalidInput("--public-key exports nothing", hint="use it alone")
    key = HomeSignatures(Home.default()).public_key()
    if arguments.json:
        console.json({"public_key": key})
    else:
        console.print(key)
    return exit_codes.OK


async def _targets(store: Store, arguments: argparse.Namespace) -> list[tuple[SessionId, Path]]:
    if not arguments.all:
        session = await resolve_session(store, arguments.session)
        return [(session, arguments.output or Path(f"{session}.zip"))]
    if arguments.session is not None:
        raise InvalidInput("a session and --all cannot be combined", hint="leave out the session or --all")
    folder: Path = arguments.output or Path("holdfast-backup")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(f"{str(folder)!r} is not empty", hint="choose a new folder with -o")
    sessions = await store.sessions()
    if not sessions:
        raise SessionNotFound("there are no sessions yet", hint="start one with: holdfast")
    private_folder(folder)
    return [(line.id, folder / f"{line.id}.zip") for line in sessions]
