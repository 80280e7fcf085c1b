"""Resuming: which session a person goes on with, and what they are told of it. A model is told nothing of that."""

import os
from dataclasses import dataclass
from typing import Literal

from holdfast.cli.cells import padded, shortened
from holdfast.cli.console import Console, visible, wants_plain
from holdfast.cli.picker import Choice, pick
from holdfast.cli.session_table import first_words, folder_of, span, state
from holdfast.core import SessionId, SystemClock, counted
from holdfast.core.errors import InvalidInput, SessionNotFound
from holdfast.store import SessionSummary, Store, resume_notice, until_free

MOST_CHOICES = 1000
_NAME = 28
_WORDS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A session as it was left, and the notice that tells the person so."""

    summary: SessionSummary
    notice: str


async def left_behind(
    store: Store,
    reference: str | Literal[True] | None,
    console: Console,
    *,
    is_plain: bool | None,
    wait_seconds: float = 0,
) -> Left | None:
    """The session to go on with: the one referred to, the one the person picks (True), or the last of this folder.

    None where the person picks none. Another process that holds it is waited for so long and no longer; who opens it then
    is told. Raises SessionNotFound, SessionAmbiguous, InvalidInput.
    """
    if reference is None:
        session: SessionId | None = await _last_here(store)
    elif reference is True:
        session = await _picked(store, console, is_plain=is_plain)
    else:
        session = await store.find(reference)
    if session is None:
        return None
    if wait_seconds and (holder := await store.holder(session)):
        console.say(f"process {holder.pid} on {holder.host} holds {session}; waiting for it", "ask")
        await until_free(store, session, timeout_seconds=wait_seconds)
    return Left(summary=await store.summary(session), notice=await notice_of(store, session))


async def notice_of(store: Store, session: SessionId) -> str:
    """What the person is shown when a session is taken up again."""
    return visible(resume_notice(await store.summary(session), await store.read(session)))


async def _last_here(store: Store) -> SessionId:
    found = await store.sessions(limit=1, folder=os.getcwd())
    if not found:
        raise SessionNotFound("no session was started in this folder", hint="see: holdfast sessions")
    return found[0].id


async def _picked(store: Store, console: Console, *, is_plain: bool | None) -> SessionId | None:
    if not console.is_interactive:
        raise InvalidInput(
            "say which session", hint="holdfast sessions lists them, and holdfast -r NAME goes on with one"
        )
    found = await store.sessions(limit=MOST_CHOICES)
    if not found:
        raise SessionNotFound("there are no sessions yet", hint="start one with: holdfast")

    now_ms = SystemClock().now_ms()
    choices = [_choice(line, now_ms) for line in found]
    key = await pick(choices, title="go on with", teller=console, is_plain=wants_plain(is_plain))
    return SessionId(key) if key is not None else None


def _choice(line: SessionSummary, now_ms: int) -> Choice:
    name, words = visible(line.name or line.id), first_words(line)
    shown = (
        f"{padded(shortened(name, _NAME), _NAME)} {span(now_ms - line.active_ms):>4} "
        f"{state(line, now_ms):<12} {counted(line.turns, 'turn'):<9} {shortened(words, _WORDS)}"
    )
    return Choice(
        key=line.id, line=shown.rstrip(), words=f"{shown} {name} {line.id} {words} {folder_of(line)}"
    )
