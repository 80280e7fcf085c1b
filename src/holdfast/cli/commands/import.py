"""Take in sessions from portable files. Each is checked first; grants that somebody else gave are revoked.

holdfast import backup.zip
holdfast import backup/*.zip         those that cannot be taken in are told, the others are

Its files, as they were after its last turn, come into a folder of its own. It goes on under the policy of this home, whatever
policy it had; choose another with `holdfast -r ID -p POLICY`. Exit codes: 1 when one was tampered with or is
here already; 2 when a file is no exported session.
"""

import argparse
from pathlib import Path

from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store
from holdfast.cli.terminal.console import Console, visible
from holdfast.core import SessionId, SystemClock, pluralize
from holdfast.core.errors import HoldfastError, InvalidInput
from holdfast.core.events import RestorePointMade
from holdfast.session import last_point
from holdfast.store import Home, Store, private_folder

WORKING = "checks the file"


def configure(parser: argparse.ArgumentParser) -> None:
    """Which files."""
    parser.add_argument("file", type=Path, nargs="+", help="what `holdfast export` wrote")
    parser.add_argument(
        "--json", action="store_true", help="the session as JSON on stdout, of several an array"
    )


async def run(arguments: argparse.Namespace) -> int:
    """Check each and take it in."""
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
            missing = await _bring_files(home, store, session)
            summaries.append(await store.summary(session))
            if not arguments.json:
                console.print(session)
                for file in missing:
                    console.say(f"not among its files, because it was not kept: {visible(file)}", "bad")
                turns, name = summaries[-1].turns, summaries[-1].name or session
                console.say(f"imported, with {pluralize(turns, 'turn')}; go on with: holdfast -r {name}")
                console.say("it goes on under the policy of this home; choose another with -p")
    if arguments.json:
        console.json(summaries[0] if len(arguments.file) == 1 else summaries)
    if any(not isinstance(problem, InvalidInput) for problem in refused):
        return exit_codes.ERROR
    return exit_codes.USAGE if refused else exit_codes.OK


async def _bring_files(home: Home, store: Store, session: SessionId) -> tuple[str, ...]:
    """Lay its files out, and name those that no restore point holds."""
    point = last_point(await store.read(session))
    if point is None or not isinstance(point.event, RestorePointMade):
        return ()

    from holdfast.world import RestorePoints

    root = private_folder(home.workspace(session))
    return (await RestorePoints(root, store=store).restore(point.event.manifest)).left
