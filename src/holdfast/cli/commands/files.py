"""List, show, copy or remove the files of a session.

holdfast files ls shop 'src/**/*.py'      all files without a pattern; dot files with -a, or if the pattern names the dot
holdfast files cat shop report.py         write the content to stdout, unchanged
holdfast files get shop report.py /tmp    copy a file or folder out; - is stdout; --force overwrites
holdfast files put shop ~/sales.csv       copy a file or folder in; a path in the session may follow
holdfast files rm shop old.csv            remove a file; -r removes a folder and everything in it
"""

import argparse
import sys
from pathlib import Path

from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store, resolve_session
from holdfast.cli.terminal.console import Console
from holdfast.cli.terminal.progress import progress_hidden
from holdfast.core import escape_invisible
from holdfast.core.errors import InvalidInput
from holdfast.session import changeable_folder, readable_folder
from holdfast.world import FolderWorld, links_in, list_files

PROGRESS = "copying files"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the subcommands."""
    actions = parser.add_subparsers(dest="action", required=True)
    meanings = {
        "pattern": "glob, such as 'src/**/*.py' (default: all files)",
        "path": "path in the session",
        "local": "path on this machine",
    }
    for action, what, words in (
        ("ls", "list the files", ("pattern?",)),
        ("cat", "show a file", ("path",)),
        ("get", "copy a file or folder out", ("path", "local?")),
        ("put", "copy a file or folder in", ("local", "path?")),
        ("rm", "remove a file or folder", ("path",)),
    ):
        one = actions.add_parser(action, help=what)
        one.add_argument("session", help="id, prefix, last four characters or name")
        for word in words:
            name = word.rstrip("?")
            one.add_argument(name, nargs="?" if word.endswith("?") else None, help=meanings[name])
        if action in ("get", "put"):
            one.add_argument("--force", action="store_true", help="overwrite existing files")
        if action == "rm":
            one.add_argument(
                "-r", "--recursive", action="store_true", help="remove a folder and everything in it"
            )
        if action == "ls":
            one.add_argument("-a", "--all", action="store_true", help="include dot files")
            one.add_argument(
                "--json", action="store_true", help="print a JSON array with size, time and mode"
            )


async def run(arguments: argparse.Namespace) -> int:
    """Find the workspace and run the subcommand."""
    # The files are not in the store: what changes them needs no more of it than what reads them.
    async with open_store(only_reads=True) as (home, store):
        session = await resolve_session(store, arguments.session)
        if arguments.action in ("put", "rm"):
            async with changeable_folder(home, store, session) as folder:
                _try(arguments, folder)
        else:
            _try(arguments, await readable_folder(home, store, session))
    return exit_codes.OK


def _try(arguments: argparse.Namespace, folder: Path) -> None:
    if not folder.is_dir():
        raise InvalidInput(f"the workspace {str(folder)!r} does not exist")
    try:
        _do(arguments, FolderWorld(folder), Console())
    except OSError as error:
        raise InvalidInput(f"{error.filename or ''}: {error.strerror or error}") from error


def _do(arguments: argparse.Namespace, world: FolderWorld, console: Console) -> None:
    match arguments.action:
        case "ls":
            _list(arguments, world, console)
        case "cat":
            _write_out(arguments.path, world)
        case "get" if arguments.local == "-":
            _write_out(arguments.path, world)
        case "get":
            local = Path(arguments.local or Path(arguments.path).name)
            target = local / Path(arguments.path).name if local.is_dir() else local
            for written in world.copy_out(arguments.path, target, overwrite=arguments.force):
                console.say(f"wrote {escape_invisible(str(written))}")
        case "put":
            local = Path(arguments.local)
            for link in links_in(local):
                console.say(f"skipped {escape_invisible(str(link))}: symlinks are not copied", "ask")
            for change in world.copy_in(local, arguments.path or local.name, overwrite=arguments.force):
                console.say(f"{change.kind} {escape_invisible(change.path)}")
        case _:
            for change in world.delete(arguments.path, recursive=arguments.recursive):
                console.say(f"deleted {escape_invisible(change.path)}")


def _write_out(path: str, world: FolderWorld) -> None:
    if world.stat(path).kind != "file":
        raise InvalidInput(
            f"{path!r} is not a file", hint="copy a folder with: holdfast files get SESSION PATH DIR"
        )
    with progress_hidden():
        sys.stdout.buffer.write(world.read(path))
        sys.stdout.buffer.flush()


def _list(arguments: argparse.Namespace, world: FolderWorld, console: Console) -> None:
    found = list_files(world, arguments.pattern or "**/*", include_hidden=arguments.all)
    stats = [world.stat(path) for path in found]
    if arguments.json:
        console.json(stats)
        return
    for stat in stats:
        console.print(f"{stat.size:>12,}  {escape_invisible(stat.path)}")
