"""Answering from elsewhere: from another terminal, whether the session is live or put away.

Another program's requests in a folder: shown exactly, and answered by a file beside them.
"""

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path

from holdfast.cli.approvals.view import show_escalation
from holdfast.cli.exit_codes import OK
from holdfast.cli.open_store import open_store
from holdfast.cli.terminal.console import Console, visible
from holdfast.core import PERSON, Escalation, EscalationId, Response, SessionId, SystemClock, encode
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
    answer_external,
    grant_description,
    grant_for,
    list_external_requests,
)
from holdfast.session import Status
from holdfast.store import Home, SqliteStore, replace_private


def show_requests(folder: Path, console: Console, *, is_json: bool) -> None:
    """Everything that waits there."""
    found = _requests(folder)
    if is_json:
        console.json(found)
    elif not found:
        console.say("nothing waits for you there")
    for request in () if is_json else found:
        _show(request, console)


async def answer_in(folder: Path, wanted: str | None, console: Console, response: Response) -> int:
    """Answer one of them, and tell whether it was taken."""
    found = [each for each in _requests(folder) if wanted in (None, each.escalation_id)]
    if len(found) != 1:
        what = f"{len(found)} calls wait there; say which" if found else "nothing like that waits there"
        raise EscalationUnknown(what, hint=f"see: holdfast waiting --folder {folder}")
    [request] = found
    _show(request, console)
    answer_external(folder, request, is_approved=response.verdict == "approve")
    for _ in range(_LOOKS):
        if request not in list_external_requests(folder):
            console.say(f"taken: {response.verdict}")
            return OK
        await asyncio.sleep(_LOOK_SECONDS)
    console.say("answered; the program that waits has not taken it yet")
    return OK


def _requests(folder: Path) -> list[ExternalRequest]:
    if not folder.is_dir():
        raise InvalidInput(
            f"{str(folder)!r} is no folder", hint="name the folder that the other program waits in"
        )
    return list_external_requests(folder)


def _show(request: ExternalRequest, console: Console) -> None:
    console.print(visible(f"{request.escalation_id}  {request.server_name}.{request.tool_name}"))
    for name, value in request.arguments.items():
        shown = value if isinstance(value, str) else encode(value).decode()
        console.print(visible(f"    {name}: {shown}"))
    console.print(visible(f"  {request.reason}"))


def configure_answer(parser: argparse.ArgumentParser) -> None:
    """What to answer."""
    parser.add_argument("escalation", nargs="?", help="the id of what waits (default: the only one)")
    parser.add_argument("--session", help="only in this session: id, prefix or name")
    parser.add_argument(
        "--folder", type=Path, metavar="DIR", help="answer another program, which waits by files in DIR"
    )
    parser.add_argument("--reason", help="what the agent is told")
    parser.add_argument("--whole", action="store_true", help="you have read a call that is too long to show")


async def answer(arguments: argparse.Namespace, response: Response) -> int:
    """Answer one escalation: in the journal where the session is put away, by file where a process holds it."""
    console = Console()
    if arguments.folder is not None:
        if response.scope != "once":
            raise InvalidInput("other programs take a yes for once only", hint="leave --for out")
        return await answer_in(arguments.folder, arguments.escalation, console, response)
    async with open_store() as (home, store):
        session, escalation = _chosen(await waiting(store, arguments.session), arguments.escalation)
        if not show_escalation(console, escalation) and response.verdict == "approve" and not arguments.whole:
            raise InvalidInput(
                "this call is too long to be shown here, and what was not seen is not approved",
                hint=f"read all of it with `holdfast waiting`, then: holdfast approve {escalation.id} --whole",
            )
        if response.scope != "once":
            _show_rule(console, escalation)
        try:
            journal = await store.open(session)
        except SessionHeld:
            _write(home, session, escalation, response)
            console.say(await _heard(store, session, escalation.id, response))
            return OK
        try:
            clock = SystemClock()
            ruling = await Escalations(journal, clock=clock).answer(
                escalation.id, response, principal=PERSON, transport="command"
            )
            grant = grant_for(ruling.escalation, response, principal=PERSON, now_ms=clock.now_ms())
            if grant is not None:
                await journal.append(GrantGiven(grant=grant))
            is_code = bool(turns := Status(journal).turns) and turns[-1].is_code
        finally:
            await journal.release()
        name = (await store.summary(session)).name or session
    console.say(f"recorded; go on with: holdfast {'exec --session' if is_code else '-r'} {name}")
    return OK


async def waiting(store: SqliteStore, reference: str | None = None) -> list[tuple[SessionId, Escalation]]:
    """Everything that waits for a person, in one session or in all."""
    if reference is not None:
        sessions = [await store.find(reference)]
    else:
        sessions = [each.id for each in await store.sessions() if each.activity == "waiting"]
    return [(session, each) for session in sessions for each in _open(await store.read(session))]


def _open(recorded: Sequence[RecordedEvent]) -> list[Escalation]:
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


def _show_rule(console: Console, escalation: Escalation) -> None:
    rule = grant_description(escalation)
    if not rule:
        raise InvalidInput(
            "where this leads cannot be told, so a yes to it holds once", hint="leave --for out"
        )
    console.say(f"  a standing yes covers: {visible(rule)}", folds=True)


def _chosen(found: list[tuple[SessionId, Escalation]], wanted: str | None) -> tuple[SessionId, Escalation]:
    matching = [each for each in found if wanted is None or each[1].id == wanted]
    if len(matching) == 1:
        return matching[0]
    if not matching:
        what = (
            "nothing waits"
            if wanted is None
            else f"{wanted!r} does not wait (any more): it was answered, or its time was up"
        )
        raise EscalationUnknown(what, hint="nothing was changed; see: holdfast waiting")
    raise EscalationUnknown(f"{len(matching)} calls wait; say which", hint="see: holdfast waiting")


def _write(home: Home, session: SessionId, escalation: Escalation, response: Response) -> None:
    decision = "approved" if response.verdict == "approve" else "denied"
    said = {"decision": decision, "digest": escalation.digest, "reason": response.reason}
    content = encode(said | {"scope": response.scope, "amount": response.amount})
    replace_private(home.escalations(session) / f"response-{escalation.id}.json", content)


async def _heard(store: SqliteStore, session: SessionId, id: EscalationId, response: Response) -> str:
    """What became of an answer by file, from the journal of the process that holds the session."""
    for _ in range(_LOOKS):
        for entry in await store.read(session):
            match event := entry.event:
                case EscalationAnswered(escalation=answered) if answered == id:
                    if event.response.verdict != response.verdict:
                        raise EscalationUnknown(f"{id!r} was already answered: {event.response.verdict}")
                    return f"the process that holds the session took it: {event.response.verdict}"
                case EscalationExpired(escalation=expired) if expired == id:
                    raise EscalationUnknown(f"the answer to {id!r} is too late: {event.reason}")
                case _:
                    pass
        await asyncio.sleep(_LOOK_SECONDS)
    return (
        "told the process that holds the session; it has not said yet that it took it (see: holdfast waiting)"
    )


_LOOKS, _LOOK_SECONDS = 60, 0.05
