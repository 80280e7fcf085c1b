"""Import sessions from portable files. Each file is verified first, and grants from elsewhere are revoked.

holdfast import backup.zip
holdfast import backup/*.zip         files that cannot be imported are reported, the others are imported

The files of its last turn are restored to the session's own folder. It continues under your own policy, whatever policy it had;
choose another with `holdfast -r ID -p POLICY`. Exit codes: 1 when a file was tampered with or its session already exists; 2 when
a file is not an exported session.
"""

import argparse
from pathlib import Path

from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store
from holdfast.cli.terminal.console import Console
from holdfast.core import SessionId, SystemClock, escape_invisible, pluralize
from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.core.events import RestorePointMade
from holdfast.session import last_point
from holdfast.store import Home, Store, private_folder

PROGRESS = "checking the file"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("file", type=Path, nargs="+", help="files written by `holdfast export`")
    parser.add_argument("--json", action="store_true", help="print the session as JSON; several as an array")


async def run(arguments: argparse.Namespace) -> int:
    """Verify and import each file."""
    console = Console()
    summaries = []
    refused: list[HoldfastError] = []
    async with open_store() as (home, store):
        for path in arguments.file:
            try:
                session = await store.import_session(path, now_ms=SystemClock().now_ms())
            except HoldfastError as problem:
                if len(arguments.file) == 1:
                    raise
                console.say(f"{path}: {problem}", "bad")
                refused.append(problem)
                continue
            missing = await _restore_files(home, store, session)
            summaries.append(await store.summary(session))
            if not arguments.json:
                console.print(session)
                for file in missing:
                    console.say(f"missing, because it was not saved: {escape_invisible(file)}", "bad")
                turns, name = summaries[-1].turns, summaries[-1].name or session
                console.say(f"imported, with {pluralize(turns, 'turn')}; resume with: holdfast -r {name}")
                console.say("it continues under your own policy; choose another with -p")
    if arguments.json:
        console.json(summaries[0] if len(arguments.file) == 1 else summaries)
    if any(not isinstance(problem, InvalidInput) for problem in refused):
        return exit_codes.ERROR
    return exit_codes.USAGE if refused else exit_codes.OK


async def _restore_files(home: Home, store: Store, session: SessionId) -> tuple[str, ...]:
    """Restore the session's files; returns those that no restore point contains."""
    point = last_point(await store.read(session))
    if point is None or not isinstance(point.event, RestorePointMade):
        return ()

    from holdfast.world import RestorePoints

    root = private_folder(home.workspace(session))
    return (await RestorePoints(root, store=store).restore(point.event.manifest)).left
