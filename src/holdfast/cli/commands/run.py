"""Run a program in the command sandbox over a folder, and get what it changed as proposals.

holdfast run -- pytest -q                      in this folder; your files stay as they are
holdfast run --session NAME -- npm test        in a session, over what is staged there
holdfast run 'make && ./tool --version'        one argument is a script for bash

The exit code is the program's own; 128 and the number of the signal if one ended it. It is 3 if the policy denied the command.
"""

import argparse
import asyncio
import shlex
import signal
import sys
from contextlib import suppress
from functools import partial

from holdfast.app import Runtime
from holdfast.cli import exit_codes
from holdfast.cli.approvals.terminal import PersonLeft, TerminalApprover
from holdfast.cli.open_store import print_store_notices
from holdfast.cli.option_types import check_no_folder, seconds
from holdfast.cli.prompts import ensure_trusted
from holdfast.cli.terminal.console import Console
from holdfast.cli.views.narrator import say_creation_notes
from holdfast.cli.views.result import print_outcome, was_refused
from holdfast.commands import MAX_TIMEOUT_SECONDS
from holdfast.config import load_config
from holdfast.core import Error, Json, Ok, Outcome, Proposed, escape_invisible, escape_to_one_line
from holdfast.core.errors import InvalidInput, SessionExists, SessionHeld, SessionNotFound
from holdfast.guests import check_timeout
from holdfast.services import notify_about
from holdfast.session import Session
from holdfast.store import Home

MAX_WAIT_SECONDS, PAUSE_SECONDS = 600.0, 0.1
MAX_NAMES = 10
"""How many staged files are named after a program."""
_REFUSED = "refused: "


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument(
        "command", nargs=argparse.REMAINDER, metavar="-- COMMAND", help="the program and its arguments"
    )
    parser.add_argument("--session", metavar="SESSION", help="run in this session, over its staged changes")
    parser.add_argument(
        "--in",
        dest="id",
        metavar="ID",
        help="run in the session with this id, which is created if there is none",
    )
    parser.add_argument("-w", "--workspace", metavar="DIR", help="the folder to run over (default: this one)")
    parser.add_argument("--trust", action="store_true", help="trust the folder, now and later")
    parser.add_argument("-p", "--policy", metavar="NAME|FILE", help="the policy that judges the command")
    parser.add_argument(
        "--timeout",
        type=_timeout,
        metavar="SECONDS",
        help=f"stop the program after this time, up to {MAX_TIMEOUT_SECONDS} s (default: {MAX_TIMEOUT_SECONDS})",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


async def run(arguments: argparse.Namespace) -> int:
    """Run the program and pass its exit code on."""
    console = Console()
    script = _script(arguments.command)
    if arguments.session is not None:
        check_no_folder(arguments)
    home = Home.default()
    workspace = arguments.workspace or "."
    # A program that names its own session, such as a hook, has asked its user about the folder.
    is_known = arguments.session is not None or arguments.id is not None
    if not is_known and not await ensure_trusted(workspace, home, console, is_given=arguments.trust):
        return exit_codes.DENIED
    settings = load_config(home)
    runtime = await Runtime.start(home=home.root, settings=settings, servers=())
    try:
        print_store_notices(runtime.store, console)
        session = await _session(runtime, arguments, workspace, console)
        if console.is_interactive:
            session.approver = TerminalApprover(console, session=session)
            session.approver_name = "terminal"
        if not arguments.json:
            session.on_output = _write_output
        async with notify_about(runtime.live_sessions, settings.notify, home=home):
            outcome = await session.execute(script, language="shell", timeout_seconds=arguments.timeout)
        return _report(outcome, session, console, is_json=arguments.json)
    except PersonLeft:
        console.say("the command waits; answer with: holdfast approve, or holdfast deny", folds=True)
        return exit_codes.WAITING
    finally:
        await runtime.close()


def _timeout(text: str) -> float:
    try:
        return check_timeout(seconds(text), most=MAX_TIMEOUT_SECONDS)
    except InvalidInput as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _script(command: list[str]) -> str:
    words = command[1:] if command[:1] == ["--"] else command
    if not words:
        raise InvalidInput("no command was given", hint="holdfast run -- pytest -q")
    return words[0] if len(words) == 1 else shlex.join(words)


async def _session(
    runtime: Runtime, arguments: argparse.Namespace, workspace: str, console: Console
) -> Session:
    if arguments.session is not None:
        return await runtime.resume(arguments.session, policy=arguments.policy, needs_model=False)
    for _ in range(int(MAX_WAIT_SECONDS / PAUSE_SECONDS) if arguments.id is not None else 0):
        try:
            return await runtime.resume(arguments.id, policy=arguments.policy, needs_model=False)
        except SessionHeld:
            # An agent runs several commands at once, each in its own process: they take turns.
            await asyncio.sleep(PAUSE_SECONDS)
        except SessionNotFound:
            with suppress(SessionExists):
                return await _create(runtime, arguments, workspace, console)
    return await _create(runtime, arguments, workspace, console)


async def _create(
    runtime: Runtime, arguments: argparse.Namespace, workspace: str, console: Console
) -> Session:
    session = await runtime.create(
        workspace=workspace,
        policy=arguments.policy,
        needs_model=False,
        description="holdfast run",
        session=arguments.id,
    )
    say_creation_notes(session, partial(console.say, folds=True))
    return session


def _write_output(text: str) -> None:
    """Write what the program prints: to a terminal escaped, to a file or pipe as it is."""
    sys.stdout.write(escape_invisible(text) if sys.stdout.isatty() else text)
    sys.stdout.flush()


def _report(outcome: Outcome, session: Session, console: Console, *, is_json: bool) -> int:
    result: Json = outcome.value if isinstance(outcome, Ok | Proposed) else None
    proposals = session.proposals()
    if is_json:
        console.json(
            {
                "session": session.id,
                "result": result,
                "outcome": outcome if result is None else None,
                "proposals": [
                    {"path": each.path, "kind": each.kind, "diff": each.diff, "asks": each.asks}
                    for each in proposals
                ],
            }
        )
    if not isinstance(result, dict):
        print_outcome(outcome, console)
        is_denied = isinstance(outcome, Error) and was_refused(session)
        return exit_codes.DENIED if is_denied else exit_codes.ERROR
    if not is_json:
        _print_changes(result, session, console)
    return _exit_code(result)


def _print_changes(result: dict[str, Json], session: Session, console: Console) -> None:
    if result.get("timed_out"):
        console.say("it was stopped because it took too long", "bad")
    if stopped := result.get("stopped"):
        console.say(f"it was stopped: {stopped}", "bad")
    refused = result.get("refused")
    for each in refused if isinstance(refused, list) else ():
        if isinstance(each, dict):
            text = escape_to_one_line(f"not kept: {each.get('path')}: {each.get('because', '')}")
            console.say(text, "bad", folds=True)
    hosts = result.get("hosts")
    for each in hosts if isinstance(hosts, list) else ():
        verdict = str(each.get("verdict")) if isinstance(each, dict) else ""
        if verdict.startswith(_REFUSED):
            # The program saw the reason too, but many do not show what a proxy answers.
            because = escape_invisible(verdict.removeprefix(_REFUSED))
            console.say(f"not reached: {because}", "bad", folds=True)
    if proposals := session.proposals():
        # What asks comes first: it is committed only by name.
        first = sorted(proposals, key=lambda each: not each.asks)[:MAX_NAMES]
        names = ", ".join(escape_invisible(each.path) + (" (asks)" if each.asks else "") for each in first)
        more = f" and {len(proposals) - MAX_NAMES} more" if len(proposals) > MAX_NAMES else ""
        console.say(f"staged, not committed: {names}{more}", "ask", folds=True)
        console.say(f"hint: holdfast proposals show {session.id}, then commit or reject", folds=True)


def _exit_code(result: dict[str, Json]) -> int:
    code = result.get("code")
    if isinstance(code, int):
        return code
    name = str(result.get("signal") or "")
    known = signal.Signals.__members__.get(name)
    return 128 + known.value if known is not None else exit_codes.ERROR
