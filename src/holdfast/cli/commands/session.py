"""Talk with an agent, or give it one task."""

import argparse
import asyncio
import os
import sys

from holdfast.app import Runtime
from holdfast.cli import exits
from holdfast.cli.approvals import TerminalApprover
from holdfast.cli.console import Console, visible
from holdfast.cli.demo_script import DEMO_ANSWERS, DEMO_MODEL, DemoAnswers, demo_model
from holdfast.cli.narrator import Narrator
from holdfast.cli.outcomes import report, say_how_it_ended
from holdfast.config import load_config
from holdfast.core.errors import SessionNotFound
from holdfast.mcp import ServerSpec, load_servers
from holdfast.models import Model
from holdfast.session import Session
from holdfast.store import Home


def configure(parser: argparse.ArgumentParser) -> None:
    """The options of a session."""
    parser.add_argument("task", nargs="*", help="what the agent is to do; without it you talk with it")
    parser.add_argument(
        "-c", "--continue", dest="is_continued", action="store_true", help="the last session of this folder"
    )
    parser.add_argument("-r", "--resume", metavar="SESSION", help="a session by id, prefix or name")
    parser.add_argument("-m", "--model", metavar="PROVIDER:NAME")
    parser.add_argument("-p", "--policy", metavar="NAME|FILE")
    parser.add_argument("-w", "--workspace", metavar="DIR")
    parser.add_argument("-n", "--name")
    parser.add_argument(
        "--sandbox", choices=["python", "wasi", "auto", "lisp"], help="where the agent's code runs"
    )
    parser.add_argument("--json", action="store_true", help="outcome, usage, proposals and audit as JSON")
    parser.add_argument("--no-escalations", action="store_true", help="whatever needs a person's yes is a no")


async def run(arguments: argparse.Namespace) -> int:
    """Open the session and hand it to the task or to the person."""
    console = Console()
    home = Home.default()
    runtime = await Runtime.start(home=home.root, settings=load_config(home), servers=_servers(home))
    try:
        session = await _open(runtime, arguments)
        return await _work(session, arguments, console)
    finally:
        await runtime.close()


async def _open(runtime: Runtime, arguments: argparse.Namespace) -> Session:
    can_ask = not arguments.no_escalations
    if arguments.is_continued or arguments.resume:
        reference = arguments.resume or await _last_here(runtime)
        summary = await runtime.store.summary(await runtime.store.find(reference))
        model: Model | str | None = demo_model() if summary.model == DEMO_MODEL else arguments.model
        return await runtime.resume(
            summary.id, model=model, policy=arguments.policy, can_ask=can_ask, sandbox=arguments.sandbox
        )
    return await runtime.create(
        model=arguments.model,
        workspace=arguments.workspace,
        policy=arguments.policy,
        name=arguments.name,
        can_ask=can_ask,
        sandbox=arguments.sandbox,
    )


def _servers(home: Home) -> tuple[ServerSpec, ...]:
    path = home.root / "mcp-servers.json"
    return load_servers(path) if path.exists() else ()


async def _last_here(runtime: Runtime) -> str:
    found = await runtime.store.sessions(limit=1, folder=os.getcwd())
    if not found:
        raise SessionNotFound("no session was started in this folder", hint="see: holdfast sessions")
    return found[0].id


async def _work(session: Session, arguments: argparse.Namespace, console: Console) -> int:
    task = " ".join(arguments.task) or (None if sys.stdin.isatty() else sys.stdin.read().strip() or None)
    for note in session.diagnostics():
        if note.code == "server-failed":
            console.say(f"  note    {visible(note.text)}", "ask")
    session.follow(Narrator(console.say, after=session.last_seq))
    if console.is_interactive and not arguments.no_escalations:
        session.approver, session.approver_name = TerminalApprover(console), "terminal"
    elif session.status.model == DEMO_MODEL:
        session.approver, session.approver_name = DemoAnswers(console), DEMO_ANSWERS
    if session.status.has_open_turn:
        console.say("  the last turn was cut off or waits; going on with it")
        outcome = await session.advance()
        if outcome is not None and task is None and not console.is_interactive:
            return report(outcome, session, arguments.json, console)
    if task is not None:
        return report(await session.send(task, transport="command"), session, arguments.json, console)
    return await _talk(session, console)


async def _talk(session: Session, console: Console) -> int:
    console.say(f"session {session.id}; /quit leaves, and holdfast -c takes it up again", "dim")
    session.on_text = console.write
    while True:
        try:
            line = (await asyncio.to_thread(input, "> ")).strip()
        except EOFError:
            return exits.OK
        if line in ("/quit", "/exit"):
            return exits.OK
        if line:
            outcome = await session.send(line, transport="terminal")
            console.print()
            say_how_it_ended(outcome, console)
