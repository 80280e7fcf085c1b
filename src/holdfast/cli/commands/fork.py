"""Begin a new session with another's history up to a point.

holdfast fork my-session                    from where it is now
holdfast fork my-session --at 12 -n other   from its event 12 (`holdfast show --events` numbers them)

Files are not touched: the fork begins in a workspace of its own. Exit codes: 1 when there is no such session; 2 when it has
no such event.
"""

import argparse
from collections.abc import Sequence

import msgspec

from holdfast.cli import exits
from holdfast.cli.console import Console
from holdfast.cli.storage import chosen_session, opened_store
from holdfast.core.events import Recorded, SessionOpened, SessionReconfigured


def configure(parser: argparse.ArgumentParser) -> None:
    """Which session, from where, under which name."""
    parser.add_argument("session", nargs="?", help="id, prefix or name (default: the newest)")
    parser.add_argument("--at", type=int, metavar="N", help="the last event to take over (default: all)")
    parser.add_argument("-n", "--name", help="a name for the fork")
    parser.add_argument("--json", action="store_true", help="the fork as JSON on stdout")


async def run(arguments: argparse.Namespace) -> int:
    """Fork it."""
    console = Console()
    async with opened_store() as (home, store):
        source = await chosen_session(store, arguments.session)
        recorded = await store.read(source)
        at = len(recorded) if arguments.at is None else arguments.at
        opened = msgspec.structs.replace(_opening(recorded), name=arguments.name)
        journal = await store.fork(source, at=at, opened=opened)
        folder = str(home.workspace(journal.session))
        await journal.append(SessionReconfigured(workspace=folder))
        await journal.release()
        summary = await store.summary(journal.session)
    if arguments.json:
        console.json(summary)
    else:
        console.print(journal.session)
        console.say(f"forked from {source} at event {at}; go on with: holdfast -r {journal.session}")
    return exits.OK


def _opening(recorded: Sequence[Recorded]) -> SessionOpened:
    return next(one.event for one in reversed(recorded) if isinstance(one.event, SessionOpened))
