"""Answering approval requests from another terminal: of open and closed sessions, and of other programs.

Other programs put their requests into a folder as files, and read the answers from files beside them.
"""

import argparse
import asyncio
from pathlib import Path
from typing import assert_never

from holdfast.cli.approvals.view import show_escalation
from holdfast.cli.exit_codes import OK
from holdfast.cli.open_store import open_store
from holdfast.cli.shared_store import add_store_option
from holdfast.cli.terminal.console import Console
from holdfast.core import Response, SystemClock, encode, escape_invisible
from holdfast.core.errors import EscalationUnknown, InvalidInput
from holdfast.core.projection import ReplayedHistory
from holdfast.gate import ExternalRequest, list_external_requests
from holdfast.gate import answer_external as answer_external_request
from holdfast.services import (
    Delivered,
    WaitingCall,
    check_response,
    deliver_answer,
    saved_coverage,
    select_waiting,
    waiting,
)
from holdfast.session import Status


def show_external_requests(folder: Path, console: Console, *, is_json: bool) -> None:
    """Print every request in the folder."""
    found = _external_requests(folder)
    if is_json:
        console.json(found)
    elif not found:
        console.say("no calls wait in this folder")
    for request in () if is_json else found:
        _show_external(request, console)


async def answer_external(folder: Path, wanted: str | None, console: Console, response: Response) -> int:
    """Answer one request, and report whether the program has read the answer."""
    found = [each for each in _external_requests(folder) if wanted in (None, each.escalation_id)]
    if len(found) != 1:
        what = (
            f"{len(found)} calls wait in this folder; name one"
            if found
            else "no such call waits in this folder"
        )
        raise EscalationUnknown(what, hint=f"list them with: holdfast waiting --folder {folder}")
    [request] = found
    _show_external(request, console)
    is_approved = response.verdict == "approve"
    answer_external_request(folder, request, is_approved=is_approved, reason=response.reason)
    for _ in range(_POLL_ATTEMPTS):
        if request not in list_external_requests(folder):
            console.say(f"delivered: {response.verdict}")
            return OK
        await asyncio.sleep(_POLL_SECONDS)
    console.say("answered; the waiting program has not read the answer yet")
    return OK


def _external_requests(folder: Path) -> list[ExternalRequest]:
    if not folder.is_dir():
        raise InvalidInput(
            f"{str(folder)!r} is not a folder",
            hint="pass the folder in which the other program puts its requests",
        )
    return list_external_requests(folder)


def _show_external(request: ExternalRequest, console: Console) -> None:
    console.print(escape_invisible(f"{request.escalation_id}  {request.server_name}.{request.tool_name}"))
    for name, value in request.arguments.items():
        shown = value if isinstance(value, str) else encode(value).decode()
        console.print(escape_invisible(f"    {name}: {shown}"))
    console.print(escape_invisible(f"  {request.reason}"))


def configure_session_choice(parser: argparse.ArgumentParser) -> None:
    """Define the option that names a session."""
    parser.add_argument("--session", help="only in this session: id, prefix, last four characters or name")


def configure_answer(parser: argparse.ArgumentParser) -> None:
    """Define the options of `approve` and `deny`."""
    parser.add_argument("escalation", nargs="?", help="id of the waiting call (default: the only one)")
    configure_session_choice(parser)
    parser.add_argument(
        "--folder", type=Path, metavar="DIR", help="answer another program that puts its requests into DIR"
    )
    parser.add_argument("--reason", metavar="TEXT", help="the reason, reported to the agent")
    parser.add_argument(
        "--whole", action="store_true", help="confirm that you have read a call that is too long to show"
    )
    add_store_option(parser)


async def answer(arguments: argparse.Namespace, response: Response, *, is_text: bool = False) -> int:
    """Answer one escalation: in the journal if the session is closed, by file if another process holds it."""
    console = Console()
    if arguments.folder is not None:
        if response.scope != "once":
            raise InvalidInput("other programs accept single approvals only", hint="leave out --for")
        return await answer_external(arguments.folder, arguments.escalation, console, response)
    clock = SystemClock()
    async with open_store(url=arguments.store) as (home, store):
        found = await waiting(store, arguments.session, now_ms=clock.now_ms())
        asked = select_waiting(found, arguments.escalation)
        escalation = asked.escalation
        check_response(escalation, response, is_text=is_text)
        is_whole = show_escalation(console, escalation, now_ms=clock.now_ms())
        if not is_whole and response.verdict == "approve" and not (arguments.whole or is_text):
            raise InvalidInput(
                "this call is too long to show here, and a call must be seen to be approved",
                hint=f"read it in full with `holdfast waiting`, then run: holdfast approve {escalation.id} --whole",
            )
        if response.scope != "once":
            covered = saved_coverage(escalation, response.offer)
            console.say(f"  a saved approval would cover: {escape_invisible(covered)}", folds=True)
        done = await deliver_answer(
            home, store, asked.session, escalation, response, transport="command", clock=clock
        )
        is_code = (
            bool(turns := Status(ReplayedHistory(await store.read(asked.session))).turns)
            and turns[-1].is_code
        )
    console.say(_describe_delivery(done, asked, is_code=is_code), folds=True)
    return OK


def _describe_delivery(done: Delivered, asked: WaitingCall, *, is_code: bool) -> str:
    match done.delivery:
        case "recorded":
            resume = "exec --session" if is_code else "-r"
            return f"recorded; resume with: holdfast {resume} {asked.name or asked.session}"
        case "accepted":
            return f"the process that holds the session accepted it: {done.verdict}"
        case "kept":
            return "kept in the store; a worker, or the process that holds the session, applies it"
        case "sent":
            return "sent to the process that holds the session, which has not confirmed it yet; check with: holdfast waiting"
        case _:
            assert_never(done.delivery)


_POLL_ATTEMPTS, _POLL_SECONDS = 60, 0.05
