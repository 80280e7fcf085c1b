"""Return a session to the end of an earlier turn: chat, files, staged changes, budget and grants.

holdfast rewind shop                    list the turns
holdfast rewind shop --to 3 --dry-run
holdfast rewind shop --to 3

Effects outside the workspace cannot be undone; --dry-run lists such calls in advance.
"""

import argparse

from holdfast.app import Runtime
from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store, resolve_session
from holdfast.cli.terminal.console import Console
from holdfast.core import escape_invisible
from holdfast.services import ReturnPoint, return_points
from holdfast.session import RewindPlan, ShownRewind

PROGRESS = "restoring the files"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument(
        "session", nargs="?", help="id, prefix, last four characters or name (default: the newest)"
    )
    parser.add_argument("--to", type=int, metavar="TURN", help="the turn to return to; 0 is the start")
    parser.add_argument("--dry-run", action="store_true", help="show what would change, without changing it")
    parser.add_argument("--json", action="store_true", help="print JSON")


async def run(arguments: argparse.Namespace) -> int:
    """List the turns, preview a rewind, or rewind."""
    console = Console()
    async with open_store() as (_, store):
        name = await resolve_session(store, arguments.session)
        if arguments.to is None:
            _list(return_points(await store.read(name)), arguments, console)
            return exit_codes.OK
    runtime = await Runtime.start(servers=())
    try:
        session = await runtime.resume(name, needs_model=False)
        turns = len(session.history())
        if arguments.dry_run:
            plan = await session.plan_rewind(arguments.to)
        else:
            plan = await session.rewind(arguments.to)
    finally:
        await runtime.close()
    if arguments.json:
        console.json(ShownRewind.of(plan) if arguments.dry_run else plan)
    else:
        _show(plan, console, turns=turns, is_done=not arguments.dry_run)
    return exit_codes.OK


def _list(points: list[ReturnPoint], arguments: argparse.Namespace, console: Console) -> None:
    if arguments.json:
        console.json(points)
        return
    if not points:
        console.say("this session has no turn to return to")
    for each in points:
        first, *_ = escape_invisible(
            each.text.strip() or ("-" if each.turn else "before the first turn")
        ).splitlines()
        console.print(f"{each.turn:>4}  {first[:100]}")


def _show(plan: RewindPlan, console: Console, *, turns: int, is_done: bool) -> None:
    for change in plan.changes:
        console.print(f"{'' if is_done else 'would be '}{change.kind:<9} {escape_invisible(change.path)}")
    if not plan.changes:
        console.say("no files change")
    for path in plan.left:
        console.say(
            f"{'stays' if is_done else 'would stay'} unchanged, because it was not saved: {escape_invisible(path)}",
            "bad",
        )
    for effect in plan.stays:
        console.say(f"cannot be undone: {effect}", "bad")
    if turns > plan.turn:
        is_one = turns == plan.turn + 1
        named = f"turn {turns}" if is_one else f"turns {plan.turn + 1} to {turns}"
        verb = "would be" if not is_done else "is" if is_one else "are"
        console.say(f"{named} {verb} removed from the conversation")
    if is_done:
        console.say(f"rewound to the end of turn {plan.turn}" if plan.turn else "rewound to the start")
