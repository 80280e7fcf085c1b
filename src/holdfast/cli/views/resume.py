"""Resuming a session: choosing it, and the notice that the user sees. The notice is never sent to a model."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from holdfast.cli.terminal.console import Console, wants_plain
from holdfast.cli.terminal.picker import Choice, pick
from holdfast.cli.terminal.wrap import ellipsize, pad
from holdfast.cli.views.session_table import first_words, folder_of, state
from holdfast.core import SessionId, SystemClock, escape_invisible, format_age, pluralize
from holdfast.core.errors import InvalidInput, SessionNotFound
from holdfast.core.events import MessagePosted, ModelReplied, RecordedEvent
from holdfast.core.projection import without_rewound
from holdfast.store import SessionSummary, Store, wait_until_released


def resume_notice(summary: SessionSummary, recorded: Sequence[RecordedEvent], *, now_ms: int) -> str:
    """The notice: name, times, number of messages, first topic, and what is unfinished."""
    effective = without_rewound(recorded)
    asked = sum(isinstance(one.event, MessagePosted) for one in effective)
    answered = sum(isinstance(one.event, ModelReplied) for one in effective)
    lines = [
        f"Resuming session {summary.name or summary.id}",
        f"Created: {_time(summary.created_ms, now_ms)}",
        f"Last activity: {_time(summary.active_ms, now_ms)}",
        f"Total messages: {asked + answered} ({asked} from user, {answered} from assistant)",
    ]
    if summary.description:
        lines.append(f"Description: {summary.description}")
    if summary.first_words:
        words = " ".join(summary.first_words.split())
        lines.append(f"First topic: {words[:80]}{'…' if len(words) > 80 else ''}")
    if summary.activity == "waiting":
        lines.append("A call waits for your approval.")
    elif summary.activity == "processing":
        lines.append("The last turn is unfinished and continues where it stopped.")
    return "\n".join(lines)


def _time(milliseconds: int, now_ms: int) -> str:
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    age = format_age(now_ms - milliseconds)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03d}Z ({age} ago)"


MAX_CHOICES = 1000
_NAME = 28
_WORDS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumable:
    """A session to resume, and its notice."""

    summary: SessionSummary
    notice: str


async def choose_session(
    store: Store,
    reference: str | Literal[True] | None,
    console: Console,
    *,
    is_plain: bool | None,
    wait_seconds: float = 0,
) -> Resumable | None:
    """The session to resume: the one referred to, the one the user picks (True), or the last one of this folder.

    None if the user picks none. If another process holds the session, wait for it up to `wait_seconds`; opening it after that
    fails. Raises SessionNotFound, SessionAmbiguous, InvalidInput.
    """
    if reference is None:
        session: SessionId | None = await _latest_in_folder(store)
    elif reference is True:
        session = await _pick_session(store, console, is_plain=is_plain)
    else:
        session = await store.find(reference)
    if session is None:
        return None
    if wait_seconds and (holder := await store.holder(session)):
        console.say(
            f"process {holder.pid} on {holder.host} holds {session}; waiting until it is released", "ask"
        )
        await wait_until_released(store, session, timeout_seconds=wait_seconds)
    return Resumable(summary=await store.summary(session), notice=await resume_notice_for(store, session))


async def resume_notice_for(store: Store, session: SessionId) -> str:
    """The notice of a session in the store."""
    now_ms = SystemClock().now_ms()
    return escape_invisible(
        resume_notice(await store.summary(session), await store.read(session), now_ms=now_ms)
    )


async def _latest_in_folder(store: Store) -> SessionId:
    found = await store.sessions(limit=1, folder=os.getcwd())
    if not found:
        raise SessionNotFound("no session was started in this folder", hint="see: holdfast sessions")
    return found[0].id


async def _pick_session(store: Store, console: Console, *, is_plain: bool | None) -> SessionId | None:
    if not console.is_interactive:
        raise InvalidInput(
            "no session given", hint="list them with: holdfast sessions; resume one with: holdfast -r NAME"
        )
    found = await store.sessions(limit=MAX_CHOICES)
    if not found:
        raise SessionNotFound("there are no sessions yet", hint="start one with: holdfast")

    now_ms = SystemClock().now_ms()
    choices = [_choice(line, now_ms) for line in found]
    key = await pick(choices, title="resume", output=console, is_plain=wants_plain(is_plain))
    return SessionId(key) if key is not None else None


def _choice(line: SessionSummary, now_ms: int) -> Choice:
    name, words = escape_invisible(line.name or line.id), first_words(line)
    shown = (
        f"{pad(ellipsize(name, _NAME), _NAME)} {format_age(now_ms - line.active_ms):>4} "
        f"{state(line, now_ms):<12} {pluralize(line.turns, 'turn'):<9} {ellipsize(words, _WORDS)}"
    )
    return Choice(
        key=line.id, line=shown.rstrip(), search_text=f"{shown} {name} {line.id} {words} {folder_of(line)}"
    )
