"""Run code as a turn, without a model: same sandbox, policy, budget, proposals and audit log.

holdfast exec script.py                  in a new session with its own folder
holdfast exec -w . --lang lisp tidy.lisp
echo 'print(world.list())' | holdfast exec --session NAME -
holdfast exec --session NAME             resume code that waited for your approval
"""

import argparse
import sys
from functools import partial
from pathlib import Path

import msgspec

from holdfast.app import Runtime
from holdfast.cli import exit_codes
from holdfast.cli.approvals.terminal import PersonLeft, TerminalApprover
from holdfast.cli.chat.activity import progress_of
from holdfast.cli.open_store import print_store_notices
from holdfast.cli.option_types import add_wait_for, check_no_folder, seconds
from holdfast.cli.prompts import ensure_trusted
from holdfast.cli.terminal.console import Console
from holdfast.cli.views.narrator import Narrator, say_creation_notes
from holdfast.cli.views.result import report
from holdfast.config import load_config
from holdfast.core import Error, Outcome, escape_invisible
from holdfast.core.errors import InvalidInput, SessionNotReady
from holdfast.core.events import CodePosted, RecordedEvent, RunEnded, RunParked
from holdfast.guests import check_timeout
from holdfast.services import notify_about
from holdfast.session import Session
from holdfast.store import Home


def configure(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.add_argument(
        "file",
        nargs="?",
        help="a file with the code, or - for stdin; without one, resume code that waited or was interrupted",
    )
    parser.add_argument(
        "--lang",
        choices=["python", "wasi", "auto", "lisp", "system"],
        help="the language or sandbox of the code (default: the session's own; python in a new one)",
    )
    parser.add_argument("--session", metavar="SESSION", help="run in this session, with its variables")
    parser.add_argument("-w", "--workspace", metavar="DIR", help="the folder the code works in")
    parser.add_argument("--trust", action="store_true", help="trust the folder of -w, now and later")
    parser.add_argument("-p", "--policy", metavar="NAME|FILE", help="the policy that decides about each call")
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=_timeout,
        help="how long the code may run, from 1 to 300 (default: code.wall_seconds of the configuration, 30)",
    )
    add_wait_for(parser)
    parser.add_argument("--no-escalations", action="store_true", help="deny every call that needs approval")
    parser.add_argument(
        "--json", action="store_true", help="print outcome, output, spending, proposals and audit as JSON"
    )


async def run(arguments: argparse.Namespace) -> int:
    """Run the code and print the result."""
    console = Console()
    code = _read(arguments.file) if arguments.file is not None else None
    if code is None and arguments.session is None:
        raise InvalidInput("no code was given", hint="pass a file, or - for stdin")
    if code is None and arguments.timeout is not None:
        raise InvalidInput("--timeout needs code to run", hint="resumed code keeps the limit it was given")
    if arguments.session is not None:
        check_no_folder(arguments)
    elif arguments.trust and arguments.workspace is None:
        raise InvalidInput("--trust needs -w DIR", hint="with -w . the code works in this folder")
    home = Home.default()
    if not await ensure_trusted(arguments.workspace, home, console, is_given=arguments.trust):
        return exit_codes.DENIED
    settings = load_config(home)
    if arguments.wait_for is not None:
        settings = msgspec.structs.replace(settings, escalation_seconds=arguments.wait_for)
    runtime = await Runtime.start(home=home.root, settings=settings, servers=())
    try:
        print_store_notices(runtime.store, console)
        can_ask = not arguments.no_escalations
        if arguments.session is not None:
            session = await runtime.resume(
                arguments.session,
                policy=arguments.policy,
                can_ask=can_ask,
                needs_model=False,
            )
        else:
            session = await runtime.create(
                workspace=arguments.workspace,
                policy=arguments.policy,
                can_ask=can_ask,
                sandbox=arguments.lang,
                needs_model=False,
            )
            say_creation_notes(session, partial(console.say, folds=True))
            if arguments.workspace is None:
                console.say(
                    f"session {session.id[-4:]} works in an empty folder of its own; -w . works in this one",
                    "dim",
                    folds=True,
                )
        say = partial(console.say, folds=True)
        session.follow(Narrator(say, after=session.last_seq, prints_outcome=not arguments.json))
        prints = _Prints(console, after=session.last_seq, is_silent=arguments.json)
        session.follow(prints)
        if console.is_interactive and can_ask:
            session.approver = TerminalApprover(console, session=session)
            session.approver_name = "terminal"
        async with notify_about(runtime.live_sessions, settings.notify, home=home):
            with progress_of(session):
                if code is None:
                    outcome = await _resume_code(session)
                else:
                    outcome = await session.execute(
                        code, language=arguments.lang, timeout_seconds=arguments.timeout
                    )
        if arguments.workspace is None and arguments.session is None:
            outcome = _with_folder_hint(outcome)
        status = report(outcome, session, arguments.json, console, printed=prints.text)
        return exit_codes.DENIED if status == exit_codes.OK and prints.has_dropped else status
    except PersonLeft:
        console.say("a call waits; answer with: holdfast approve, or holdfast deny", folds=True)
        console.say(f"then resume with: holdfast exec --session {session.id}", folds=True)
        return exit_codes.WAITING
    finally:
        await runtime.close()


async def _resume_code(session: Session) -> Outcome:
    turns = session.status.turns
    outcome = await session.advance() if turns and turns[-1].is_code else None
    if outcome is None:
        raise SessionNotReady(
            "this session has no code to resume: none waits, was interrupted, or stopped at a limit that was raised",
            hint="pass a file with code to run",
        )
    return outcome


def _with_folder_hint(outcome: Outcome) -> Outcome:
    """Explain where the code ran if it missed a file: a new session has an empty folder of its own."""
    if not isinstance(outcome, Error) or "FileNotFoundError" not in outcome.message + outcome.code:
        return outcome
    return msgspec.structs.replace(
        outcome, hint="the code ran in a new empty folder; use -w . for files of the current one"
    )


class _Prints:
    """Writes what the code of the last turn prints to stdout, each piece once, and notes whether changes were dropped."""

    def __init__(self, console: Console, *, after: int, is_silent: bool) -> None:
        self._console = console
        self._after = after
        self._is_silent = is_silent
        self._written = ""
        self.text = ""
        self.has_dropped = False

    def __call__(self, entry: RecordedEvent) -> None:
        match entry.event:
            case CodePosted():
                self.text, self.has_dropped = "", False
            case RunParked(printed=printed) | RunEnded(printed=printed):
                self.text = printed
                self.has_dropped = isinstance(entry.event, RunEnded) and bool(entry.event.dropped)
                if entry.seq > self._after and not self._is_silent:
                    self._console.write(escape_invisible(printed.removeprefix(self._written)))
                    self._written = printed
            case _:
                pass


def _timeout(text: str) -> float:
    try:
        return check_timeout(seconds(text))
    except InvalidInput as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _read(file: str) -> str:
    try:
        if file == "-":
            return _standard_input().decode("utf-8-sig")  # strictly: what runs is what was written
        return Path(file).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        what = "stdin" if file == "-" else repr(file)
        raise InvalidInput(
            f"{what} is not UTF-8 text: byte {error.start} cannot be decoded", hint="save the script as UTF-8"
        ) from error
    except OSError as error:
        raise InvalidInput(
            f"{file!r} cannot be read: {error.strerror}",
            hint="pass a file; a line of code goes to stdin: echo 'print(1)' | holdfast exec -",
        ) from error


def _standard_input() -> bytes:
    """All bytes of standard input. A program that embeds the command may have replaced it by a text stream."""
    binary = getattr(sys.stdin, "buffer", None)
    return sys.stdin.read().encode() if binary is None else binary.read()
