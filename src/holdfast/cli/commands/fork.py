"""Start a new session from a turn of another, with its chat, files, staged changes, budget and grants.

holdfast fork my-session                    from the end of its last turn
holdfast fork my-session --at 3 -n other    from the end of its turn 3 (`holdfast rewind my-session` lists them)
holdfast fork my-session --at 3 --dry-run   how its files would differ, and what was done since and cannot be undone
holdfast fork my-session --event 12         the chat alone, up to an event (`holdfast show --events` numbers them)

The fork works in its own folder; the other session is not changed. `holdfast merge` brings its changes back. Exit codes: 1 when there is no such session, it is damaged, or
another session has the name; 2 when it has no such turn or event.
"""

import argparse
from pathlib import Path

import msgspec

from holdfast.app import Runtime
from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store, resolve_session
from holdfast.cli.terminal.console import Console
from holdfast.core import Nonconverged, SessionId, escape_invisible
from holdfast.core.events import SessionReconfigured, TurnEnded
from holdfast.core.projection import unfinished_turn
from holdfast.session import RewindPlan, fork_opening, plan_fork
from holdfast.store import Home, SessionSummary, Store, chosen_name, shortened_note
from holdfast.world import RestorePoints

PROGRESS = "copying the files"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument(
        "session", nargs="?", help="id, prefix, last four characters or name (default: the newest)"
    )
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--at", type=int, metavar="TURN", help="the turn to start from (default: the last)")
    place.add_argument("--event", type=int, metavar="N", help="the chat alone, up to this event")
    parser.add_argument("-n", "--name", help="name the fork")
    parser.add_argument(
        "--dry-run", action="store_true", help="show how it would differ, without creating it"
    )
    parser.add_argument("--json", action="store_true", help="print the fork, or the plan, as JSON")


async def run(arguments: argparse.Namespace) -> int:
    """Fork the session, or show what would happen."""
    console = Console()
    missing: tuple[str, ...] = ()
    async with open_store() as (home, store):
        source = await resolve_session(store, arguments.session)
        if arguments.dry_run:
            _show(await _plan(home, store, source, arguments.at), arguments, console)
            return exit_codes.OK
        if arguments.event is not None:
            summary = await _fork_chat(home, store, source, arguments)
        else:
            missing = (await _plan(home, store, source, arguments.at, compares_folder=False)).left
    if arguments.event is None:
        summary = await _fork_all(source, arguments)
    if note := shortened_note(arguments.name):
        console.say(f"note: {note}", "ask")
    if arguments.json:
        console.json(summary)
    else:
        console.print(summary.id)
        for path in missing:
            console.say(f"not in the fork, because it was not saved: {escape_invisible(path)}", "bad")
        console.say(
            f"forked from {source}; it works in its own copy of the files, {home.workspace(summary.id)}",
            folds=True,
        )
        console.say(f"resume with: holdfast -r {summary.name or summary.id}")
        console.say(f"bring its changes back with: holdfast merge {summary.name or summary.id}")
    return exit_codes.OK


async def _fork_all(source: SessionId, arguments: argparse.Namespace) -> SessionSummary:
    runtime = await Runtime.start(servers=())
    try:
        session = await runtime.fork(source, at=arguments.at, name=arguments.name, needs_model=False)
        return await runtime.store.summary(session.id)
    finally:
        await runtime.close()


async def _fork_chat(
    home: Home, store: Store, source: SessionId, arguments: argparse.Namespace
) -> SessionSummary:
    name = chosen_name(arguments.name) if arguments.name is not None else None
    recorded = await store.read(source)
    opened = msgspec.structs.replace(fork_opening(source, recorded, arguments.event), name=name)
    journal = await store.fork(source, at=arguments.event, opened=opened)
    await journal.append(SessionReconfigured(workspace=str(home.workspace(journal.session))))
    if (turn := unfinished_turn(recorded[: arguments.event])) is not None:
        # Its calls would find none of the files that they were made for.
        await journal.append(TurnEnded(turn=turn, outcome=Nonconverged(reason="cancelled")))
    await journal.release()
    return await store.summary(journal.session)


async def _plan(
    home: Home, store: Store, source: SessionId, at: int | None, *, compares_folder: bool = True
) -> RewindPlan:
    """The start of the fork and the files it lacks; with `compares_folder`, also how it differs from the current folder."""
    plan, _ = plan_fork(source, await store.read(source), at)
    folder = Path((await store.summary(source)).workspace or home.workspace(source))
    points = RestorePoints(
        folder,
        store=store,
        last=plan.manifest,
        cache=home.stat_cache(source),
    )
    changes = (await points.preview(plan.manifest)).changes if compares_folder and folder.is_dir() else ()
    return msgspec.structs.replace(plan, changes=changes, left=await points.unkept(plan.manifest))


def _show(plan: RewindPlan, arguments: argparse.Namespace, console: Console) -> None:
    if arguments.json:
        console.json(plan)
        return
    for change in plan.changes:
        console.print(f"would be {change.kind:<9} {escape_invisible(change.path)}")
    if not plan.changes:
        console.say(f"the files are the same as after turn {plan.turn}")
    for path in plan.left:
        console.say(f"would not be in the fork, because it was not saved: {escape_invisible(path)}", "bad")
    for effect in plan.stays:
        console.say(f"cannot be undone: {escape_invisible(effect)}", "bad")
