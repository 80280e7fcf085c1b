"""The entry: find the command, load only its module, run it, and turn errors into a line, a hint and an exit code."""

import argparse
import asyncio
import sys
from collections.abc import Coroutine, Sequence
from importlib import import_module
from typing import Any

from holdfast.cli.console import Console
from holdfast.cli.exits import ERROR, INTERRUPTED, NO_MODEL, OK, USAGE

COMMANDS: dict[str, str] = {
    "demo": "a whole session without key or network",
    "sandbox": "the sandboxes: what is in force, and building the one for real CPython",
    "exec": "run code as a turn, without a model",
    "sessions": "list sessions, newest first",
    "show": "what was said and done in a session",
    "search": "find where something was said, in any session",
    "rename": "give a session another name",
    "fork": "begin a new session with another's history",
    "export": "write a session into one file that proves itself",
    "import": "take in a session from such a file",
    "pin": "exempt a session from pruning",
    "prune": "remove old sessions",
    "delete": "delete a session for good",
    "verify": "check that journals are exactly what was written",
    "rebuild-index": "make the list and the search anew from the journals",
    "replay": "run a session's code again and report what differs",
    "waiting": "what waits for your yes or no, in all sessions",
    "approve": "say yes to a call that waits",
    "deny": "say no to a call that waits",
    "audit": "what was asked, judged and done in a session",
    "files": "the files of a session: list, show, fetch, put, remove",
    "proposals": "what a session staged: show it, make it, or drop it",
    "rewind": "take a session back to an earlier turn, files included",
    "why": "why a call was allowed, denied or asked about",
    "grants": "standing yeses: list them, or take one back",
    "budget": "what a session may spend and has spent",
    "model": "which model there is, what it costs, and a local one to install",
    "mcp": "your MCP servers: list, add, remove, look at changed tools, say what arguments mean",
    "proxy": "serve your MCP servers to another agent, every call behind the gate",
    "install": "have Claude Code, Codex, Cursor or VS Code reach their tools through Holdfast",
    "hook": "judge a built-in tool of Claude Code before it runs",
    "teams": "teams of agents that ask each other: roster, questions, an MCP server",
    "policy": "what a policy decides, why, and what a change would change",
}
"""Command and what it does; the module of the same name in `cli.commands` has `configure` and `run`."""

_USAGE = """\
holdfast: a session runtime for AI agents. It gives an agent real tools and keeps you in charge.

  holdfast                         talk with an agent in this folder
  holdfast "fix the failing test"  one task: the answer on stdout, everything else on stderr
  holdfast -c                      go on with the last session of this folder
  holdfast -r NAME                 go on with a session by id, prefix or name
  holdfast demo                    see it work, without a key or network

options of a session:
  -m, --model PROVIDER:NAME   which model (or $HOLDFAST_MODEL, or config.toml)
  -p, --policy NAME|FILE      what is allowed, denied, asked and staged
  -w, --workspace DIR         the project folder the agent works in
  -n, --name NAME             a name for the new session
      --json                  outcome, usage, proposals and audit as JSON on stdout
      --no-escalations        whatever needs a person's yes is a no
  -h, --help                  this text
      --version               the version

commands (holdfast COMMAND --help tells more):
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] in COMMANDS:
        return _run_command(words[0], words[1:])
    if words and words[0] in ("-h", "--help", "help"):
        print(_help(), end="")
        return OK
    if words and words[0] == "--version":
        from holdfast import __version__

        print(f"holdfast {__version__}")
        return OK
    return _run_command("session", words)


def _help() -> str:
    width = max(map(len, COMMANDS))
    return _USAGE + "".join(f"  {name:<{width}}  {what}\n" for name, what in COMMANDS.items())


def _run_command(name: str, words: list[str]) -> int:
    module = import_module(f"holdfast.cli.commands.{name.replace('-', '_')}")
    prog = "holdfast" if name == "session" else f"holdfast {name}"
    parser = argparse.ArgumentParser(
        prog=prog, description=module.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    module.configure(parser)
    arguments = parser.parse_args(words)
    return _guarded(module.run(arguments))


def _guarded(work: Coroutine[Any, Any, int]) -> int:
    from holdfast.core.errors import HoldfastError, InvalidInput, ModelMissing

    console = Console()
    try:
        return asyncio.run(work)
    except (KeyboardInterrupt, asyncio.CancelledError):
        console.say("stopped")
        return INTERRUPTED
    except BrokenPipeError:
        sys.stderr.close()
        return OK
    except HoldfastError as error:
        console.say(f"holdfast: {error}", "bad")
        if error.hint:
            console.say(f"hint: {error.hint}")
        if isinstance(error, ModelMissing):
            return NO_MODEL
        return USAGE if isinstance(error, InvalidInput) else ERROR
