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
from holdfast.config import load_config
from holdfast.core import Error, Needs, Nonconverged, Ok, Outcome, Proposed, SessionId
from holdfast.core.errors import ModelMissing, SessionNotFound
from holdfast.models import Model
from holdfast.session import Session
from holdfast.store import Home

NO_MODEL = "no model is configured: set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY, or start a local server (Ollama)"
NO_MODEL_HINT = "choose one with --model provider:name, or see a whole session without any: holdfast demo"


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
    parser.add_argument("--json", action="store_true", help="outcome, usage, proposals and audit as JSON")
    parser.add_argument("--no-escalations", action="store_true", help="whatever needs a person's yes is a no")


async def run(arguments: argparse.Namespace) -> int:
    """Open the session and hand it to the task or to the person."""
    console = Console()
    home = Home.default()
    runtime = await Runtime.start(home=home.root, settings=load_config(home))
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
        return await runtime.resume(summary.id, model=model, policy=arguments.policy, can_ask=can_ask)
    session = await runtime.create(
        model=arguments.model,
        workspace=arguments.workspace,
        policy=arguments.policy,
        name=arguments.name,
        can_ask=can_ask,
    )
    if session.status.model == "":
        await runtime.store.delete(await _closed(session))
        raise ModelMissing(NO_MODEL, hint=NO_MODEL_HINT)
    return session


async def _closed(session: Session) -> SessionId:
    await session.close()
    return session.id


async def _last_here(runtime: Runtime) -> str:
    found = await runtime.store.sessions(limit=1, folder=os.getcwd())
    if not found:
        raise SessionNotFound("no session was started in this folder", hint="see: holdfast sessions")
    return found[0].id


async def _work(session: Session, arguments: argparse.Namespace, console: Console) -> int:
    task = " ".join(arguments.task) or (None if sys.stdin.isatty() else sys.stdin.read().strip() or None)
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
            _say_how_it_ended(outcome, console)


def report(outcome: Outcome, session: Session, is_json: bool, console: Console) -> int:
    """Print the answer of a task, and return the exit code that fits."""
    if is_json:
        console.json(
            {
                "session": session.id,
                "outcome": outcome,
                "spent": session.budget.spent,
                "proposals": [{"path": p.path, "kind": p.kind, "diff": p.diff} for p in session.proposals()],
                "audit": session.audit(),
            }
        )
    elif isinstance(outcome, Ok | Proposed):
        console.print(visible(str(outcome.value or "")))
    _say_how_it_ended(outcome, console)
    return _exit_code(outcome)


def _say_how_it_ended(outcome: Outcome, console: Console) -> None:
    match outcome:
        case Proposed():
            console.say(f"proposed, not yet made: {', '.join(outcome.proposals)}", "ask")
        case Needs():
            console.say(visible(outcome.description), "ask")
        case Nonconverged():
            console.say(f"stopped before it was done: {outcome.reason} {outcome.dimension}".rstrip(), "bad")
        case Error():
            console.say(f"error: {visible(outcome.message)}", "bad")
            if outcome.hint:
                console.say(f"hint: {outcome.hint}")
        case _:
            pass


def _exit_code(outcome: Outcome) -> int:
    match outcome:
        case Ok() | Proposed():
            return exits.OK
        case Needs():
            return exits.WAITING
        case Nonconverged():
            return exits.INTERRUPTED if outcome.reason == "cancelled" else exits.BUDGET
        case _:
            return exits.ERROR
