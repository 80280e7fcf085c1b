"""Bring the changes of a fork back: commit them to the folder of the session it was forked from.

holdfast merge other-way                shows the diff against the parent's folder, and asks
holdfast merge other-way --dry-run      only shows it
holdfast merge other-way src/ --yes     only what is at or beneath these paths, without asking

It takes what is committed and what is staged in the fork, all of it or nothing. A file that has also changed in the parent is
a conflict: nothing is merged, and the file is named. The fork stays as it is and can be merged again later. Exit codes: 1 when
there is a conflict, no such session, or a process has one of the two open; 2 when it is not a fork, or no terminal is attached
to ask at; 3 when you decline.
"""

import argparse

from holdfast.app import Runtime
from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store, resolve_session
from holdfast.cli.prompts import confirm
from holdfast.cli.terminal.console import Console
from holdfast.cli.terminal.progress import progress_hidden
from holdfast.cli.views.diff_lines import LINE_TONES, diff_lines
from holdfast.cli.views.merge import merge_lines
from holdfast.core import escape_invisible, pluralize
from holdfast.core.errors import InvalidInput
from holdfast.session import ShownMerge

PROGRESS = "comparing the files"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument(
        "session", metavar="FORK", help="id, prefix, last four characters or name of the fork"
    )
    parser.add_argument(
        "paths", nargs="*", default=[], metavar="PATH", help="only these paths (default: all)"
    )
    parser.add_argument("-y", "--yes", action="store_true", help="merge without asking")
    parser.add_argument("--dry-run", action="store_true", help="show what would change, without changing it")
    parser.add_argument("--json", action="store_true", help="print the merge, or the plan, as JSON")


async def run(arguments: argparse.Namespace) -> int:
    """Show the changes of the fork, ask, and merge."""
    console = Console()
    async with open_store() as (_, store):
        fork = await resolve_session(store, arguments.session)
    runtime = await Runtime.start(servers=())
    try:
        plan = await runtime.plan_merge(fork, *arguments.paths)
        if not arguments.json:
            for proposal in plan.proposals if not arguments.yes or arguments.dry_run else ():
                for each in diff_lines(proposal):
                    console.show_line(each.pieces, LINE_TONES[each.kind])
            for line, tone in merge_lines(plan):
                console.show(line, tone)
        if not arguments.dry_run:
            plan.check()
        if plan.proposals and not arguments.dry_run:
            if not arguments.yes and not await _confirms(len(plan.proposals), console):
                console.say("nothing was merged")
                return exit_codes.DENIED
            plan = await runtime.merge(fork, *arguments.paths, shown=plan)
    finally:
        await runtime.close()
    if arguments.json:
        console.json(ShownMerge.of(plan) if arguments.dry_run else plan)
    elif not arguments.dry_run:
        for proposal in plan.proposals:
            console.say(f"merged {escape_invisible(proposal.path)}")
    return exit_codes.OK


async def _confirms(files: int, console: Console) -> bool:
    if not console.is_interactive:
        raise InvalidInput("no terminal is attached to ask at", hint="--yes merges without asking")
    with progress_hidden():
        return await confirm(f"Commit {pluralize(files, 'file')} in the parent's folder?", console)
