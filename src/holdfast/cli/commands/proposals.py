"""Show, commit or reject the staged changes of a session.

holdfast proposals                               those of the newest session
holdfast proposals show shop                     unified diffs, to read or to pipe into git apply
holdfast proposals review shop                   accept or reject hunk by hunk: full screen, or questions if plain
holdfast proposals commit shop                   all or none; refused if a file has changed in the meantime
holdfast proposals commit shop report.py         only this file
holdfast proposals commit shop --check 'pytest -q'   only if the command succeeds on a copy with the changes
holdfast proposals reject shop notes.txt
"""

import argparse
import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from holdfast.app import Runtime
from holdfast.cli import exit_codes
from holdfast.cli.open_store import open_store, resolve_session
from holdfast.cli.prompts import reading_lines
from holdfast.cli.terminal.console import Console, wants_plain
from holdfast.cli.terminal.diff_viewer import review as review_hunks
from holdfast.cli.terminal.line_review import review_by_line
from holdfast.cli.terminal.progress import progress_hidden
from holdfast.cli.views.diff_lines import LINE_TONES, diff_lines
from holdfast.cli.views.hunk_review import NOTHING_APPLIED
from holdfast.core import escape_invisible
from holdfast.core.errors import InvalidInput
from holdfast.services import choose_proposals, decide_hunks, decide_proposals
from holdfast.session import Session, view_staged
from holdfast.world import StagedWorld

PROGRESS = "opening the session"


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument(
        "action",
        nargs="?",
        choices=["show", "review", "commit", "reject"],
        default="show",
        help="the action (default: show)",
    )
    parser.add_argument(
        "session", nargs="?", help="id, prefix, last four characters or name (default: the newest)"
    )
    parser.add_argument(
        "paths", nargs="*", default=[], metavar="PATH", help="only these paths (default: all)"
    )
    parser.add_argument(
        "--check", metavar="COMMAND", help="commit only if this command succeeds on a copy with the changes"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


async def run(arguments: argparse.Namespace) -> int:
    """Show without opening the session, which another process may hold; commit or reject in it, without a model."""
    console = Console()
    if arguments.check is not None and arguments.action != "commit":
        raise InvalidInput("--check decides about a commit", hint="holdfast proposals commit --check COMMAND")
    async with open_store() as (home, store):
        name = await resolve_session(store, arguments.session)
        if arguments.action == "show":
            _show(await view_staged(home, store, name), arguments, console)
            return exit_codes.OK
    runtime = await Runtime.start(servers=())
    try:
        session = await runtime.resume(name, needs_model=False)
        if not session.staged_paths() and not arguments.paths:
            console.say("nothing is staged")
            return exit_codes.OK
        if arguments.action == "review":
            return await _review(session, arguments, console)
        if arguments.check is not None and not await _passes(session, arguments, console):
            return exit_codes.DENIED
        done = await decide_proposals(session, arguments.action, arguments.paths)
    finally:
        await runtime.close()
    if arguments.json:
        console.json(done)
    else:
        for path in done.paths:
            console.say(
                f"{'committed' if arguments.action == 'commit' else 'rejected'} {escape_invisible(path)}"
            )
        if done.asking:
            names = " ".join(map(escape_invisible, done.asking))
            console.say(f"still staged, because you must approve it by name: {names}", "ask", folds=True)
    return exit_codes.OK


async def _review(session: Session, arguments: argparse.Namespace, console: Console) -> int:
    """Let the user decide hunk by hunk."""
    if not console.is_interactive:
        raise InvalidInput("a review needs a terminal", hint="use `show`, then `commit` with paths")
    proposals = choose_proposals(session, arguments.paths)
    with progress_hidden():
        if wants_plain():
            with reading_lines(console) as ask:
                decisions = await review_by_line(proposals, say=console.say, ask=ask)
        else:
            decisions = await review_hunks(proposals)
    if not decisions:
        console.say(NOTHING_APPLIED)
        return exit_codes.OK
    done = await decide_hunks(session, decisions)
    if arguments.json:
        console.json(done)
    for path in () if arguments.json else done.paths:
        console.say(f"committed {escape_invisible(path)}")
    for each in () if arguments.json else decisions:
        if each.rejected:
            part = " in part" if each.path in done.paths else ""
            console.say(f"rejected {escape_invisible(each.path)}{part}")
    if left := session.proposals():
        console.say(f"still staged: {', '.join(escape_invisible(each.path) for each in left)}", folds=True)
    return exit_codes.OK


async def _passes(session: Session, arguments: argparse.Namespace, console: Console) -> bool:
    """Run the user's command in a copy of the workspace with all staged changes."""
    if arguments.action != "commit" or arguments.paths:
        raise InvalidInput(
            "--check works only when all changes are committed", hint="leave out the paths or --check"
        )
    with TemporaryDirectory(prefix="holdfast-check-") as folder:
        await asyncio.to_thread(session.copy_proposed, Path(folder))
        # The user typed this command at their own terminal, so it runs in their shell, outside the gate.
        with progress_hidden():
            child = await asyncio.create_subprocess_shell(arguments.check, cwd=folder, stdout=sys.stderr)
            code = await child.wait()
    if code != 0:
        console.say(f"nothing was committed: {escape_invisible(arguments.check)} exited with {code}", "bad")
    return code == 0


def _show(staged: StagedWorld, arguments: argparse.Namespace, console: Console) -> None:
    proposals = choose_proposals(staged, arguments.paths)
    if arguments.json:
        console.stream_json(proposals)
        return
    if not proposals:
        console.say("nothing is staged")
    for proposal in proposals:
        for line in diff_lines(proposal):
            console.show_line(line.pieces, LINE_TONES[line.kind])
