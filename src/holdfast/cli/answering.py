"""Answering from elsewhere: from another terminal, whether the session is live or put away."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from holdfast.cli.approvals import show_escalation
from holdfast.cli.console import Console
from holdfast.cli.exits import OK
from holdfast.cli.storage import opened_store
from holdfast.core import PERSON, Escalation, Response, SessionId, SystemClock, encode
from holdfast.core.errors import EscalationUnknown, SessionHeld
from holdfast.core.events import EscalationAnswered, EscalationExpired, EscalationOpened, Recorded
from holdfast.core.fold import effective
from holdfast.gate import Escalations
from holdfast.store import EmbeddedStore, Home


def configure_answer(parser: argparse.ArgumentParser) -> None:
    """What to answer."""
    parser.add_argument("escalation", nargs="?", help="the id of what waits (default: the only one)")
    parser.add_argument("--session", help="only in this session: id, prefix or name")
    parser.add_argument("--reason", help="what the agent is told")


async def answer(arguments: argparse.Namespace, response: Response) -> int:
    """Answer one escalation: in the journal where the session is put away, by file where a process holds it."""
    console = Console()
    async with opened_store() as (home, store):
        session, escalation = _chosen(await waiting(store, arguments.session), arguments.escalation)
        show_escalation(console, escalation)
        try:
            journal = await store.open(session)
        except SessionHeld:
            _write(home, session, escalation, response)
            console.say("told the process that holds the session")
            return OK
        try:
            await Escalations(journal, clock=SystemClock()).answer(
                escalation.id, response, principal=PERSON, transport="command"
            )
        finally:
            await journal.release()
    console.say(f"recorded; go on with: holdfast -r {session}")
    return OK


async def waiting(store: EmbeddedStore, reference: str | None = None) -> list[tuple[SessionId, Escalation]]:
    """Everything that waits for a person, in one session or in all."""
    if reference is not None:
        sessions = [await store.find(reference)]
    else:
        sessions = [each.id for each in await store.sessions() if each.activity == "waiting"]
    return [(session, each) for session in sessions for each in _open(await store.read(session))]


def _open(recorded: Sequence[Recorded]) -> list[Escalation]:
    found: dict[str, Escalation] = {}
    for entry in effective(recorded):
        match event := entry.event:
            case EscalationOpened():
                found[event.escalation.id] = event.escalation
            case EscalationAnswered() | EscalationExpired():
                found.pop(event.escalation, None)
            case _:
                pass
    return list(found.values())


def _chosen(found: list[tuple[SessionId, Escalation]], wanted: str | None) -> tuple[SessionId, Escalation]:
    matching = [each for each in found if wanted is None or each[1].id == wanted]
    if len(matching) == 1:
        return matching[0]
    if not matching:
        raise EscalationUnknown("nothing like that waits", hint="see: holdfast waiting")
    raise EscalationUnknown(f"{len(matching)} calls wait; say which", hint="see: holdfast waiting")


def _write(home: Home, session: SessionId, escalation: Escalation, response: Response) -> None:
    folder: Path = home.escalations(session)
    decision = "approved" if response.verdict == "approve" else "denied"
    content = encode({"decision": decision, "digest": escalation.digest, "reason": response.reason})
    beside = folder / f".answer-{escalation.id}"
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)
    beside.replace(folder / f"response-{escalation.id}.json")
