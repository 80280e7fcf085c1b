"""Chat with an agent, or give it one task.

holdfast                                   chat with an agent that works in this folder
holdfast "why does test_totals fail?"      run one task: the answer goes to stdout, everything else to stderr
git diff | holdfast "review this"          piped input becomes part of the task
holdfast --json --budget usd=1,time=5m --yes-to net-fetch "get the figures"
holdfast -c                                resume the last session of this folder
holdfast -r                                choose a session from a list and resume it

Exit codes: 0 success, 1 error, 2 usage, 3 denied, 4 budget, 5 waits for approval, 6 no model, 130 stopped.
"""

import argparse
import asyncio
import sys
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from holdfast.app import Runtime, configured_servers
from holdfast.cli import exit_codes
from holdfast.cli.approvals.preapproved import PreApproved, check_rule_names
from holdfast.cli.approvals.terminal import PersonLeft, TerminalApprover
from holdfast.cli.chat.activity import progress_of
from holdfast.cli.demo_script import DEMO_ANSWERS, DEMO_MODEL, DemoAnswers, demo_model
from holdfast.cli.open_store import print_store_notices
from holdfast.cli.option_types import add_added_folders, add_wait_for, seconds
from holdfast.cli.prompts import ensure_trusted, offer_demo, offer_local_model
from holdfast.cli.shared_store import add_store_option
from holdfast.cli.terminal.console import Console, wants_plain
from holdfast.cli.terminal.keyboard import hidden_typing
from holdfast.cli.terminal.progress import ProgressIndicator
from holdfast.cli.views.narrator import Narrator, describe_call, say_creation_notes
from holdfast.cli.views.result import report
from holdfast.config import load_config
from holdfast.core import Needs, escape_invisible, parse_limits
from holdfast.core.errors import InvalidInput, ModelMissing
from holdfast.models import Model
from holdfast.policy import narrowed_by_project
from holdfast.session import Session, Settings, TurnDriver, load_session_policy
from holdfast.store import Home, chosen_name
from holdfast.world import open_folder

if TYPE_CHECKING:
    from holdfast.cli.views.resume import Resumable


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the session options."""
    parser.add_argument("task", nargs="*", help="the task; without one a chat starts")
    parser.add_argument(
        "-c",
        "--continue",
        dest="is_continued",
        action="store_true",
        help="resume the last session of this folder",
    )
    parser.add_argument(
        "-r",
        "--resume",
        nargs="?",
        const=True,
        metavar="SESSION",
        help="resume a session by id, the last four characters of it, prefix or name; without one, choose from a list",
    )
    parser.add_argument(
        "--wait",
        metavar="SECONDS",
        type=seconds,
        default=0,
        help="wait this long for a session that another process holds",
    )
    parser.add_argument("-m", "--model", metavar="PROVIDER:NAME", help="the model (see: holdfast model list)")
    parser.add_argument("-p", "--policy", metavar="NAME|FILE", help="the policy that decides about each call")
    parser.add_argument(
        "-w", "--workspace", metavar="DIR", help="the folder the agent works in; the default is this one"
    )
    parser.add_argument(
        "--scratch", action="store_true", help="work in an empty folder that only this session has"
    )
    parser.add_argument("--trust", action="store_true", help="trust the folder, now and later")
    parser.add_argument("-n", "--name", help="name the new session")
    parser.add_argument(
        "--budget", metavar="LIMITS", help="spending limits, such as usd=1,tokens=50k,time=5m"
    )
    parser.add_argument(
        "--sandbox", choices=["python", "wasi", "auto", "lisp", "system"], help="where the agent's code runs"
    )
    parser.add_argument(
        "--json", action="store_true", help="print outcome, usage, proposals and audit as JSON"
    )
    parser.add_argument(
        "--yes-to",
        metavar="RULE",
        action="append",
        default=[],
        help="approve the calls that this rule asks about",
    )
    add_added_folders(parser)
    add_wait_for(parser)
    add_store_option(parser)
    parser.add_argument("--no-escalations", action="store_true", help="deny every call that needs approval")
    parser.add_argument(
        "--plain",
        action=argparse.BooleanOptionalAction,
        help="linear text for screen readers and simple terminals; also with HOLDFAST_PLAIN=1 or TERM=dumb",
    )


async def run(arguments: argparse.Namespace) -> int:
    """Open the session, and run the task or the chat."""
    console = Console(is_plain=arguments.plain)
    home = Home.default()
    if arguments.is_continued and arguments.resume is not None:
        raise InvalidInput(
            "-c and -r cannot be combined",
            hint="-c resumes the last session of this folder, -r the one you name",
        )
    limits = parse_limits(arguments.budget) if arguments.budget else None
    if limits is not None and _resumes(arguments):
        raise InvalidInput(
            "--budget is for new sessions; a resumed one keeps its limits",
            hint="raise them with: holdfast budget add",
        )
    if arguments.scratch and _resumes(arguments):
        raise InvalidInput(
            "--scratch is for new sessions; a resumed one keeps its folder", hint="leave out one of them"
        )
    if not _resumes(arguments):
        arguments.workspace = _chosen_folder(arguments, home, console)
    if not await ensure_trusted(arguments.workspace, home, console, is_given=arguments.trust):
        return exit_codes.DENIED
    project = Path(arguments.workspace) if arguments.workspace else None
    settings = load_config(home, project=project)
    if arguments.wait_for is not None:
        settings = msgspec.structs.replace(settings, escalation_seconds=arguments.wait_for)
    if arguments.yes_to:
        _check_preapproved(arguments, settings, home)
    runtime = await Runtime.start(
        home=home.root, settings=settings, servers=configured_servers(home), store_url=arguments.store
    )
    try:
        print_store_notices(runtime.store, console)
        left: Resumable | None = None
        if _resumes(arguments):
            from holdfast.cli.views.resume import choose_session

            left = await choose_session(
                runtime.store,
                arguments.resume,
                console,
                is_plain=arguments.plain,
                wait_seconds=arguments.wait,
            )
            if left is None:
                console.say("no session was chosen")
                return exit_codes.OK
            _check_unchanged(arguments, left)
        try:
            session = await _open(runtime, arguments, left)
        except ModelMissing as missing:
            if arguments.model is not None:
                raise
            try:
                arguments.model = await offer_local_model(missing, console)
            except ModelMissing as declined:
                if arguments.task or not console.is_interactive:
                    raise
                if not await offer_demo(console, servers=None if declined is missing else declined.hint):
                    raise
                from holdfast.cli.commands.demo import run as run_demo

                return await run_demo(argparse.Namespace(yes=False))
            session = await _open(runtime, arguments, left)
        with _typing_until_prompt(arguments):
            if left is not None:
                console.say(left.notice, "dim")
            else:
                say_creation_notes(session, partial(console.say, folds=True))
            async with _notifications(runtime, settings, home):
                return await _work(runtime, session, arguments, console)
    finally:
        await runtime.close()


def _chosen_folder(arguments: argparse.Namespace, home: Home, console: Console) -> str | None:
    """The folder to work in: of -w, else the current one. None is an empty folder of the session's own."""
    if arguments.workspace is not None:
        if arguments.scratch:
            raise InvalidInput("-w and --scratch cannot be combined", hint="leave one of them out")
        return str(arguments.workspace)
    if arguments.scratch:
        return None
    try:
        return str(open_folder(Path.cwd(), home.root))
    except InvalidInput as refused:
        if console.is_interactive:
            console.say(
                f"{refused}, so the agent does not work there; this session gets an empty folder of its own",
                "dim",
                folds=True,
            )
        return None


def _notifications(runtime: Runtime, settings: Settings, home: Home) -> AbstractAsyncContextManager[object]:
    """Notify the targets of the settings, if there are any."""
    if not settings.notify.targets:
        return nullcontext()
    from holdfast.services import notify_about

    return notify_about(runtime.live_sessions, settings.notify, home=home)


def _resumes(arguments: argparse.Namespace) -> bool:
    return arguments.is_continued or arguments.resume is not None


def _check_preapproved(arguments: argparse.Namespace, settings: Settings, home: Home) -> None:
    """Refuse --yes-to without a task, or with a rule that never asks, before a session is created for it."""
    if not arguments.task and sys.stdin.isatty():
        raise InvalidInput(
            "--yes-to needs a task", hint="in a chat you are asked, and `a` approves more than one call"
        )
    if _resumes(arguments):
        return  # the session knows its policy
    folder = arguments.workspace
    _, policy = load_session_policy(
        arguments.policy or settings.policy, policies=home.policies, owns_folder=folder is None
    )
    check_rule_names(arguments.yes_to, narrowed_by_project(policy, Path(folder)) if folder else policy)


def _check_unchanged(arguments: argparse.Namespace, left: "Resumable") -> None:
    """Refuse options that would have no effect: a resumed session keeps its folder and its name."""
    summary = left.summary
    if arguments.workspace and Path(arguments.workspace).resolve() != Path(summary.workspace).resolve():
        raise InvalidInput(
            f"this session works in {summary.workspace!r}", hint="leave out -w, or start a new session there"
        )
    if arguments.name is not None and chosen_name(arguments.name) != summary.name:
        raise InvalidInput(
            "a resumed session keeps its name", hint=f"rename it with: holdfast rename {summary.id} NAME"
        )


async def _open(runtime: Runtime, arguments: argparse.Namespace, left: "Resumable | None") -> Session:
    can_ask = not arguments.no_escalations
    with (
        _typing_until_prompt(arguments),
        ProgressIndicator(lambda: "opening the session", is_plain=arguments.plain),
    ):
        if left is not None:
            model: Model | str | None = demo_model() if left.summary.model == DEMO_MODEL else arguments.model
            return await runtime.resume(
                left.summary.id,
                model=model,
                policy=arguments.policy,
                can_ask=can_ask,
                sandbox=arguments.sandbox,
                dirs=arguments.add_dir,
            )
        return await runtime.create(
            model=arguments.model,
            workspace=arguments.workspace,
            policy=arguments.policy,
            name=arguments.name,
            budget=arguments.budget,
            can_ask=can_ask,
            sandbox=arguments.sandbox,
            dirs=arguments.add_dir,
        )


def _typing_until_prompt(arguments: argparse.Namespace) -> AbstractContextManager[None]:
    """Leave what is typed before the prompt of a chat to the prompt."""
    has_prompt = not arguments.task and not wants_plain(arguments.plain)
    return hidden_typing() if has_prompt else nullcontext()


async def _work(runtime: Runtime, session: Session, arguments: argparse.Namespace, console: Console) -> int:
    piped = "" if sys.stdin.isatty() else sys.stdin.read().strip()
    task = "\n\n".join(part for part in (" ".join(arguments.task), piped) if part) or None
    for problem in session.server_problems:
        console.say(f"  note    {escape_invisible(problem)}", "ask", folds=True)
    for call in session.unknown_calls():
        console.say(f"  unknown {describe_call(call)}", "bad")
        console.say(
            "          it was interrupted; whether it happened is unknown, and it is not repeated", "bad"
        )
    if task is None and sys.stdin.isatty():
        from holdfast.cli.chat.chat import chat_at_terminal

        return await chat_at_terminal(runtime, session, is_plain=arguments.plain)
    asks = console.is_interactive and not arguments.no_escalations
    session.follow(
        Narrator(partial(console.say, folds=True), after=session.last_seq, asks=asks and not arguments.yes_to)
    )
    check_rule_names(arguments.yes_to, session.policy)
    preapproved = PreApproved(session, arguments.yes_to)
    if asks:
        session.approver = preapproved.before(TerminalApprover(console, session=session))
        session.approver_name = "terminal"
    elif session.status.model == DEMO_MODEL:
        session.approver, session.approver_name = DemoAnswers(console), DEMO_ANSWERS
    driver = TurnDriver(
        session,
        transport="command",
        notify=lambda text: console.say(f"  {text}"),
        answer_pending=preapproved.answer_pending,
    )
    # In its own task, so that a stop by the user can be distinguished from our own cancellation.
    work = asyncio.create_task(driver.run(task))
    try:
        with progress_of(session, is_plain=arguments.plain):
            await asyncio.wait({work})
    finally:
        work.cancel()
    if work.cancelled():
        console.say("stopped; completed actions are not undone")
        return exit_codes.INTERRUPTED
    if isinstance(work.exception(), PersonLeft):
        console.say(
            "a call waits: answer with holdfast approve or deny, then resume with holdfast -c",
            folds=True,
        )
        return exit_codes.WAITING
    outcome = work.result()
    if outcome is None:
        console.say("nothing to do: no task was given", "ask")
        return exit_codes.USAGE
    if isinstance(outcome, Needs) and arguments.yes_to:
        asking = ", ".join(each.decision.rule for each in session.escalations())
        console.say(
            f"--yes-to {' '.join(arguments.yes_to)} does not cover the waiting call: rule {asking} asks",
            "ask",
        )
    return report(outcome, session, arguments.json, console)
