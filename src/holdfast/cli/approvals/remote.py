"""Answering approval requests from another terminal: of open and closed sessions, and of other programs.

Other programs put their requests into a folder as files, and read the answers from files beside them.
"""

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path

from holdfast.cli.approvals.view import show_escalation
from holdfast.cli.exit_codes import OK
from holdfast.cli.open_store import open_store
from holdfast.cli.terminal.console import Console
from holdfast.core import (
    PERSON,
    Escalation,
    EscalationId,
    Response,
    SessionId,
    SystemClock,
    describe_coverage,
    encode,
    escape_invisible,
    is_question,
)
from holdfast.core.errors import EscalationUnknown, InvalidInput, SessionHeld
from holdfast.core.events import (
    EscalationAnswered,
    EscalationExpired,
    EscalationOpened,
    GrantGiven,
    RecordedEvent,
)
from holdfast.core.projection import without_rewound
from holdfast.gate import (
    Escalations,
    ExternalRequest,
    LargeValues,
    check_offer,
    grant_description,
    grant_for,
    list_external_requests,
    write_first_answer,
)
from holdfast.gate import (
    answer_external as answer_external_request,
)
from holdfast.session import Status
from holdfast.store import Home, Store


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
    parser.add_argument("--session", help="only in this session: id, prefix or name")


def configure_answer(parser: argparse.ArgumentParser) -> None:
    """Define the options of `approve` and `deny`."""
    parser.add_argument("escalation", nargs="?", help="id of the waiting call (default: the only one)")
    configure_session_choice(parser)
    parser.add_argument(
        "--folder", type=Path, metavar="DIR", help="answer another program that puts its requests into DIR"
    )
    parser.add_argument("--reason", help="the reason, reported to the agent")
    parser.add_argument(
        "--whole", action="store_true", help="confirm that you have read a call that is too long to show"
    )


def _check_kind(escalation: Escalation, response: Response, *, is_text: bool) -> None:
    """A question is answered with text, a call is approved or denied. Raises InvalidInput."""
    if is_question(escalation) and response.verdict == "approve" and not is_text:
        raise InvalidInput(
            "the agent asks a question, which needs an answer in words",
            hint=f"holdfast answer {escalation.id} TEXT",
        )
    if is_text and not is_question(escalation):
        raise InvalidInput(
            f"{escalation.id!r} is a call, not a question",
            hint=f"holdfast approve {escalation.id}, or holdfast deny {escalation.id}",
        )


async def answer(arguments: argparse.Namespace, response: Response, *, is_text: bool = False) -> int:
    """Answer one escalation: in the journal if the session is closed, by file if another process holds it."""
    console = Console()
    if arguments.folder is not None:
        if response.scope != "once":
            raise InvalidInput("other programs accept single approvals only", hint="leave out --for")
        return await answer_external(arguments.folder, arguments.escalation, console, response)
    async with open_store() as (home, store):
        session, escalation = _select(await waiting(store, arguments.session), arguments.escalation)
        _check_kind(escalation, response, is_text=is_text)
        is_whole = show_escalation(console, escalation, now_ms=SystemClock().now_ms())
        if not is_whole and response.verdict == "approve" and not (arguments.whole or is_text):
            raise InvalidInput(
                "this call is too long to show here, and a call must be seen to be approved",
                hint=f"read it in full with `holdfast waiting`, then run: holdfast approve {escalation.id} --whole",
            )
        if response.offer is not None:
            check_offer(escalation, response.offer)
        if response.scope != "once":
            _show_grant_coverage(console, escalation, response.offer)
        try:
            journal = await store.open(session)
        except SessionHeld:
            _write_response_file(home, session, escalation, response)
            console.say(await _await_outcome(store, session, escalation.id, response))
            return OK
        try:
            clock = SystemClock()
            ruling = await Escalations(journal, clock=clock).answer(
                escalation.id, response, principal=PERSON, transport="command"
            )
            asked = await LargeValues(store.blob).whole_escalation(ruling.escalation)
            grant = grant_for(asked, response, principal=PERSON, now_ms=clock.now_ms())
            if grant is not None:
                await journal.append(GrantGiven(grant=grant))
            is_code = bool(turns := Status(journal).turns) and turns[-1].is_code
        finally:
            await journal.release()
        name = (await store.summary(session)).name or session
    console.say(f"recorded; resume with: holdfast {'exec --session' if is_code else '-r'} {name}")
    return OK


async def waiting(store: Store, reference: str | None = None) -> list[tuple[SessionId, Escalation]]:
    """The calls that wait for approval, in one session or in all, with all of their arguments."""
    if reference is not None:
        sessions = [await store.find(reference)]
    else:
        sessions = [each.id for each in await store.sessions() if each.activity == "waiting"]
    large_values = LargeValues(store.blob)
    now_ms = SystemClock().now_ms()
    return [
        (session, await large_values.whole_escalation(each))
        for session in sessions
        for each in _open_escalations(await store.read(session))
        # With no process left, an escalation whose time is up is a denial that is not recorded yet.
        if each.expires_ms is None or each.expires_ms > now_ms
    ]


def _open_escalations(recorded: Sequence[RecordedEvent]) -> list[Escalation]:
    found: dict[str, Escalation] = {}
    for entry in without_rewound(recorded):
        match event := entry.event:
            case EscalationOpened():
                found[event.escalation.id] = event.escalation
            case EscalationAnswered() | EscalationExpired():
                found.pop(event.escalation, None)
            case _:
                pass
    return list(found.values())


def _show_grant_coverage(console: Console, escalation: Escalation, offer: int | None) -> None:
    rule = (
        grant_description(escalation)
        if offer is None
        else describe_coverage(escalation.offers[offer - 1].coverage)
    )
    if not rule:
        raise InvalidInput(
            "the target of this call is unknown, so it can only be approved once", hint="leave out --for"
        )
    console.say(f"  a saved approval would cover: {escape_invisible(rule)}", folds=True)


def _select(found: list[tuple[SessionId, Escalation]], wanted: str | None) -> tuple[SessionId, Escalation]:
    matching = [each for each in found if wanted is None or each[1].id == wanted]
    if len(matching) == 1:
        return matching[0]
    if not matching:
        what = (
            "no call waits for approval"
            if wanted is None
            else f"{wanted!r} does not wait: it was answered, it expired, or the id is wrong"
        )
        raise EscalationUnknown(what, hint="nothing was changed; list waiting calls with: holdfast waiting")
    raise EscalationUnknown(f"{len(matching)} calls wait; name one", hint="list them with: holdfast waiting")


def _write_response_file(home: Home, session: SessionId, escalation: Escalation, response: Response) -> None:
    decision = "approved" if response.verdict == "approve" else "denied"
    answer = {"decision": decision, "digest": escalation.digest, "reason": response.reason}
    content = encode(answer | {"scope": response.scope, "amount": response.amount, "offer": response.offer})
    write_first_answer(home.escalations(session), escalation.id, content)


async def _await_outcome(store: Store, session: SessionId, id: EscalationId, response: Response) -> str:
    """What became of an answer by file, read from the journal that the other process writes."""
    for _ in range(_POLL_ATTEMPTS):
        for entry in await store.read(session):
            match event := entry.event:
                case EscalationAnswered(escalation=answered) if answered == id:
                    if event.response.verdict != response.verdict:
                        raise EscalationUnknown(f"{id!r} was already answered: {event.response.verdict}")
                    return f"the process that holds the session accepted it: {event.response.verdict}"
                case EscalationExpired(escalation=expired) if expired == id:
                    raise EscalationUnknown(f"the answer to {id!r} came too late: {event.reason}")
                case _:
                    pass
        await asyncio.sleep(_POLL_SECONDS)
    return "sent to the process that holds the session, which has not confirmed it yet; check with: holdfast waiting"


_POLL_ATTEMPTS, _POLL_SECONDS = 60, 0.05
