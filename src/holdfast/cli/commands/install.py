"""Have another agent reach its tools through Holdfast.

  holdfast install claude --dry-run     show what would be written
  holdfast install claude               for the project in this folder
  holdfast install codex --user         for every project of yours
  holdfast install claude --remove      take it out again

Claude Code gets the proxy and a hook, so that its built-in tools pass the gate too; the others get the proxy.
"""

import argparse
import contextlib
import os
import sys
from pathlib import Path

from holdfast.cli import exit_codes
from holdfast.cli.terminal.console import Console
from holdfast.core import escape_invisible
from holdfast.mcp import Installation, McpFiles, plan
from holdfast.store import Home


def configure(parser: argparse.ArgumentParser) -> None:
    """Which client, and for which projects."""
    parser.add_argument("client", choices=("claude", "codex", "cursor", "vscode"), help="the program")
    parser.add_argument("--dry-run", action="store_true", help="show the changes and write nothing")
    parser.add_argument(
        "-p", "--policy", metavar="NAME|FILE", help="what judges its calls (default: project)"
    )
    parser.add_argument("--remove", action="store_true", help="take out again what was written")
    parser.add_argument("--user", action="store_true", help="for all your projects, not only this folder")
    parser.add_argument(
        "--trust-elicitation",
        metavar="CLIENT_NAME",
        help="you know that this client shows questions to a human: its approvals count",
    )


async def run(arguments: argparse.Namespace) -> int:
    """Plan, show, write."""
    console = Console()
    is_for_user = arguments.user or arguments.client == "codex"
    planned = plan(
        arguments.client,
        command=own_command(),
        folder=Path.cwd(),
        home=Path.home(),
        is_for_user=is_for_user,
        policy=arguments.policy or "",
        is_removal=arguments.remove,
    )
    for change in planned.changes:
        console.print(escape_invisible(change.diff))
    if not planned.changes:
        console.say(f"nothing to change: it is {'not installed' if arguments.remove else 'installed'}")
    elif arguments.dry_run:
        console.say("nothing was written (--dry-run)")
    else:
        _write(planned, console)
    if arguments.trust_elicitation and not arguments.dry_run:
        McpFiles(Home.default().root).trust_client(arguments.trust_elicitation)
        console.say(
            f"approvals by elicitation count from now on when {arguments.trust_elicitation!r} gives them"
        )
    if planned.bypassing and not arguments.remove:
        console.say(
            f"these servers are still reached directly, past the gate: {', '.join(planned.bypassing)}", "ask"
        )
        console.say("hint: holdfast mcp add NAME -- COMMAND, then remove them there")
    return exit_codes.OK


def own_command() -> tuple[str, ...]:
    """How another program starts us: by the full path where we have one."""
    program = Path(sys.argv[0]).absolute()
    if program.name == "holdfast" and os.access(program, os.X_OK):
        return (str(program),)
    return (sys.executable, "-m", "holdfast")


def _write(planned: Installation, console: Console) -> None:
    for change in planned.changes:
        path = Path(change.path).resolve()  # a file that is kept elsewhere stays there
        if change.is_removal:
            path.unlink()
            with contextlib.suppress(OSError):
                path.parent.rmdir()  # where it was made for this file alone
            console.say(f"removed: {path}", "good")
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.holdfast")
        draft.write_bytes(change.after.encode())
        if path.exists():
            draft.chmod(path.stat().st_mode & 0o777)
        draft.replace(path)
        console.say(f"written: {path}", "good")
