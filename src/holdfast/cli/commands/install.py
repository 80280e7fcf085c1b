"""Configure another agent to use its tools through Holdfast.

  holdfast install claude --dry-run     show the changes
  holdfast install claude               for the project in this folder
  holdfast install codex --user         for all your projects
  holdfast install claude --sandbox-bash    run its commands in the sandbox
  holdfast install claude --remove      remove it again

Claude Code gets the proxy and a hook, so its built-in tools also pass the gate. The other agents get the proxy.
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
from holdfast.process.own_command import module_command
from holdfast.store import Home


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the arguments."""
    parser.add_argument(
        "client", choices=("claude", "codex", "cursor", "vscode"), help="the agent to configure"
    )
    parser.add_argument("--dry-run", action="store_true", help="show the changes without writing them")
    parser.add_argument(
        "-p", "--policy", metavar="NAME|FILE", help="the policy that judges its calls (default: project)"
    )
    parser.add_argument("--remove", action="store_true", help="remove what was written")
    parser.add_argument("--user", action="store_true", help="for all your projects, not only this folder")
    parser.add_argument(
        "--sandbox-bash",
        action="store_true",
        help="run commands of Claude Code's Bash tool in the command sandbox, so that what they change becomes proposals",
    )
    parser.add_argument(
        "--shell", action="store_true", help="offer tools that run programs in the command sandbox"
    )
    parser.add_argument(
        "--trust-elicitation",
        metavar="CLIENT_NAME",
        help="accept approvals from this client, because it shows questions to a human",
    )


async def run(arguments: argparse.Namespace) -> int:
    """Plan the changes, print them, and write them."""
    console = Console()
    is_for_user = arguments.user or arguments.client == "codex"
    planned = plan(
        arguments.client,
        command=own_command(),
        folder=Path.cwd(),
        home=Path.home(),
        is_for_user=is_for_user,
        policy=arguments.policy or "",
        has_shell=arguments.shell,
        sandboxes_bash=arguments.sandbox_bash,
        is_removal=arguments.remove,
    )
    for change in planned.changes:
        console.print(escape_invisible(change.diff))
    if not planned.changes:
        console.say(
            f"nothing to change: it is {'not installed' if arguments.remove else 'already installed'}"
        )
    elif arguments.dry_run:
        console.say("nothing was written (--dry-run)")
    else:
        _write(planned, console)
    if arguments.trust_elicitation and not arguments.dry_run:
        McpFiles(Home.default().root).trust_client(arguments.trust_elicitation)
        console.say(f"approvals from {arguments.trust_elicitation!r} are now accepted")
    if planned.bypassing and not arguments.remove:
        console.say(f"these servers still bypass the gate: {', '.join(planned.bypassing)}", "ask")
        console.say("hint: holdfast mcp add NAME -- COMMAND, then remove them there")
    return exit_codes.OK


def own_command() -> tuple[str, ...]:
    """The command with which another program starts us, by full path if there is one."""
    program = Path(sys.argv[0]).absolute()
    if program.name == "holdfast" and os.access(program, os.X_OK):
        return (str(program),)
    return module_command()


def _write(planned: Installation, console: Console) -> None:
    for change in planned.changes:
        path = Path(change.path).resolve()  # a symbolic link stays a link
        if change.is_removal:
            path.unlink()
            with contextlib.suppress(OSError):
                path.parent.rmdir()  # only if it is empty now
            console.say(f"removed: {path}", "good")
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.holdfast")
        draft.write_bytes(change.after.encode())
        if path.exists():
            draft.chmod(path.stat().st_mode & 0o777)
        draft.replace(path)
        console.say(f"written: {path}", "good")
