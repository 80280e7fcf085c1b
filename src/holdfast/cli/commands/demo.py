"""Run a whole session without a key or network: see how an agent works behind the gate, and what you are asked.

holdfast demo              you answer the questions
holdfast demo --yes        a script answers them

The model is a script that ships with Holdfast. Everything else is real: the sandbox, the policy, the gate, the journal and the
files. It takes a few seconds.
"""

import argparse
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path

from holdfast.app import Runtime
from holdfast.cli import exit_codes
from holdfast.cli.approvals.terminal import PersonLeft, TerminalApprover
from holdfast.cli.chat.activity import progress_of
from holdfast.cli.demo_script import (
    DEMO_ANSWERS,
    DEMO_POLICY,
    FILES,
    TASK,
    TESTS_TASK,
    DemoAnswers,
    demo_model,
)
from holdfast.cli.prompts import confirm
from holdfast.cli.terminal.console import Console
from holdfast.cli.views.narrator import Narrator
from holdfast.cli.views.tables import audit_table
from holdfast.core import escape_invisible, pluralize
from holdfast.session import Session, Settings


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument("--yes", action="store_true", help="let a script answer, even at a terminal")


async def run(arguments: argparse.Namespace) -> int:
    """Create the project, run the turn, and show the result."""
    console = Console(err=sys.stdout)  # one stream, so that questions and output stay in order
    is_asked = console.is_interactive and not arguments.yes
    project = _make_project()
    _print_introduction(console, project, is_asked)
    runtime = await Runtime.start(settings=Settings(), servers=())
    try:
        session = await runtime.create(model=demo_model(), workspace=project, policy=str(DEMO_POLICY))
        console.show(f"you     {TASK}", "strong", folds=True)
        session.follow(Narrator(partial(console.show, folds=True), after=1, shows_code=True, asks=True))
        session.approver = TerminalApprover(console, session=session) if is_asked else DemoAnswers(console)
        session.approver_name = "terminal" if is_asked else DEMO_ANSWERS
        with progress_of(session):
            await session.send(TASK, transport="demo")
        is_committed = await _decide_proposals(session, console, is_asked)
        await _run_tests(session, console, is_committed=is_committed)
        _show_record(session, runtime, console, project)
    except PersonLeft:
        console.show()
        console.show(f"You left; the call keeps waiting. Resume with: holdfast -r {session.id}", folds=True)
        return exit_codes.WAITING
    finally:
        await runtime.close()
    return exit_codes.OK


def _make_project() -> Path:
    project = Path(tempfile.mkdtemp(prefix="holdfast-demo-")) / "shop"
    project.mkdir()
    for name, content in FILES.items():
        (project / name).write_text(content, encoding="utf-8")
    return project


def _print_introduction(console: Console, project: Path, is_asked: bool) -> None:
    console.show("Holdfast demo: one whole session, without a key or network", "strong")
    console.show(
        "  scripted   the model: fixed replies that ship with Holdfast"
        + ("" if is_asked else ", and your answers"),
        folds=True,
    )
    console.show(
        "  real       the sandbox its Python runs in, the policy, the gate, the journal, the files",
        folds=True,
    )
    console.show(f"  project    {project}")
    console.show()


async def _decide_proposals(session: Session, console: Console, is_asked: bool) -> bool:
    """Show the proposals and commit or reject them. Whether they were committed."""
    console.show()
    console.show("Its edits are staged; your files are unchanged. It proposes:", "strong")
    for proposal in session.proposals():
        if proposal.runs_when is not None:
            console.show(
                f"  {escape_invisible(proposal.path)}: this runs when you {proposal.runs_when}", "ask"
            )
        for line in escape_invisible(proposal.diff).splitlines():
            console.show(
                f"  {line}", "good" if line.startswith("+") else "bad" if line.startswith("-") else "plain"
            )
    console.show()
    if not is_asked:
        console.say("  You are not asked: the script `demo-answers` runs /commit for you.")
        await session.commit()
        return True
    is_committed = await confirm("Commit these changes?", console)
    await (session.commit() if is_committed else session.reject())
    return is_committed


async def _run_tests(session: Session, console: Console, *, is_committed: bool) -> None:
    """The second turn: edit, test, fix by a program, commit a part, rewind. Only where a sandbox works."""
    console.show()
    if session.sandbox_status.tier == "none":
        console.show(
            "The second part, in which the agent runs tests, is skipped: no command sandbox is available.",
            folds=True,
        )
        console.show("  `holdfast doctor` says what is missing.")
        return
    console.show(f"you     {TESTS_TASK}", "strong", folds=True)
    with progress_of(session):
        await session.send(TESTS_TASK, transport="demo")
    console.show()
    console.show("One diff of what it wrote and what its program changed:", "strong")
    for proposal in session.proposals():
        for line in escape_invisible(proposal.diff).splitlines():
            console.show(
                f"  {line}", "good" if line.startswith("+") else "bad" if line.startswith("-") else "plain"
            )
    console.show()
    console.say("  A part of it is committed: /commit report.py")
    await session.commit("report.py")
    console.say("  And all of it is undone, what the program changed included: /rewind 1 go")
    plan = await session.rewind(1)
    for change in plan.changes:
        console.say(f"  {change.kind:<9} {escape_invisible(change.path)}")
    if session.proposals():
        # The rewind goes to the end of the first turn, before its proposals were decided.
        console.say(f"  The first part is {'committed' if is_committed else 'rejected'} again")
        await (session.commit() if is_committed else session.reject())


def _show_record(session: Session, runtime: Runtime, console: Console, project: Path) -> None:
    console.show()
    console.show("The audit log: every call with its decision and result", "strong")
    for line in audit_table(session.audit(), width=shutil.get_terminal_size((98, 24)).columns - 2):
        console.show(f"  {line}")
    console.show()
    spent = session.budget.spent
    console.show(
        f"Spent   {pluralize(spent.steps, 'reply', 'replies')}, {pluralize(spent.tokens, 'token')} (estimated: the model is a script), {pluralize(spent.calls, 'call')}, "
        f"{pluralize(spent.bytes_written, 'byte')} staged, {spent.wall_seconds:.2f} s; cost 0",
        folds=True,
    )
    console.show(f"Files   {project}")
    console.show(f"Journal {runtime.home.database}")
    console.show(f"Session {session.id}")
    console.show()
    name = _program_name()
    console.show(f"Next    {name} audit | {name} doctor | {name} --help")


def _program_name() -> str:
    """How to call this program again: after `make demo`, the shell may not find it by its name."""
    called = sys.argv[0]
    return called if Path(called).name == "holdfast" and shutil.which("holdfast") is None else "holdfast"
