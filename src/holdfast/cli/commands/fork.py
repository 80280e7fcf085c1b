"""Begin a new session that goes on from a turn of another: its chat, files, staged changes, budget and grants.

holdfast fork my-session                    from the end of its last turn
holdfast fork my-session --at 3 -n other    from the end of its turn 3 (`holdfast rewind my-session` lists them)
holdfast fork my-session --at 3 --dry-run   how its files would differ, and what was done since and cannot be undone
holdfast fork my-session --event 12         the chat alone, up to an event (`holdfast show --events` numbers them)

The fork works in a folder of its own; the other session stays as it is. Exit codes: 1 when there is no such session, it is damaged,
or another has the name; 2 when
it has no such turn or event.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import msgspec

from holdfast.app import Runtime
from holdfast.cli import exit_codes
from holdfast.cli.open_store import chosen_session, open_store
from holdfast.cli.terminal.console import Console, visible
from holdfast.core import SessionId
from holdfast.core.events import RecordedEvent, SessionOpened, SessionReconfigured
from holdfast.session import RewindPlan, plan_fork
from holdfast.store import Home, SessionSummary, Store, chosen_name
from holdfast.world import RestorePoints

WORKING = "lays the files out"


def configure(parser: argparse.ArgumentParser) -> None:
    """Which session, from where, under which name."""
    parser.add_argument("session", nargs="?", help="id, prefix or name (default: the newest)")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--at", type=int, metavar="TURN", help="the turn to go on from (default: the last)")
    place.add_argument("--event", type=int, metavar="N", help="the chat alone, up to this event")
    parser.add_argument("-n", "--name", help="a name for the fork")
    parser.add_argument("--dry-run", action="store_true", help="say how it would differ, and make nothing")
    parser.add_argument("--json", action="store_true", help="the fork, or the plan, as JSON on stdout")


async def run(arguments: argparse.Namespace) -> int:
    """Fork it, or say what that would mean."""
    console = Console()
    missing: tuple[str, ...] = ()
    async with open_store() as (home, store):
        source = await chosen_session(store, arguments.session)
        if arguments.dry_run:
            _show(await _plan(home, store, source, arguments.at), arguments, console)
            return exit_codes.OK
        if arguments.event is not None:
            summary = await _fork_chat(home, store, source, arguments)
        else:
            missing = (await _plan(home, store, source, arguments.at, looks=False)).left
    if arguments.event is None:
        summary = await _fork_all(source, arguments)
    if arguments.json:
        console.json(summary)
    else:
        console.print(summary.id)
        for path in missing:
            console.say(f"not in the fork, because it was not kept: {visible(path)}", "bad")
        console.say(f"forked from {source}; go on with: holdfast -r {summary.name or summary.id}")
    return exit_codes.OK


async def _fork_all(source: SessionId, arguments: argparse.Namespace) -> SessionSummary:
    runtime = await Runtime.start()
    try:
        session = await runtime.fork(source, at=arguments.at, name=arguments.name, needs_model=False)
        return await runtime.store.summary(session.id)
    finally:
        await runtime.close()


async def _fork_chat(
    home: Home, store: Store, source: SessionId, arguments: argparse.Namespace
) -> SessionSummary:
    name = chosen_name(arguments.name) if arguments.name is not None else None
    opened = msgspec.structs.replace(_opening(await store.read(source)), name=name)
    journal = await store.fork(source, at=arguments.event, opened=opened)
    await journal.append(SessionReconfigured(workspace=str(home.workspace(journal.session))))
    await journal.release()
    return await store.summary(journal.session)


async def _plan(
    home: Home, store: Store, source: SessionId, at: int | None, *, looks: bool = True
) -> RewindPlan:
    """Where the fork begins and which files it lacks; with a look at the folder, also how it would differ from that."""
    plan, _ = plan_fork(source, await store.read(source), at)
    folder = Path((await store.summary(source)).workspace or home.workspace(source))
    points = RestorePoints(folder, store=store, last=plan.manifest, cache=home.stat_cache(source))
    changes = (await points.preview(plan.manifest)).changes if looks and folder.is_dir() else ()
    return msgspec.structs.replace(plan, changes=changes, left=await points.unkept(plan.manifest))


def _show(plan: RewindPlan, arguments: argparse.Namespace, console: Console) -> None:
    if arguments.json:
        console.json(plan)
        return
    for change in plan.changes:
        console.print(f"would be {change.kind:<9} {visible(change.path)}")
    if not plan.changes:
        console.say(f"the files of turn {plan.turn} are those that are there now")
    for path in plan.left:
        console.say(f"would not be in the fork, because it was not kept: {visible(path)}", "bad")
    for effect in plan.stays:
        console.say(f"cannot be undone: {visible(effect)}", "bad")


def _opening(recorded: Sequence[RecordedEvent]) -> SessionOpened:
    return next(one.event for one in reversed(recorded) if isinstance(one.event, SessionOpened))
