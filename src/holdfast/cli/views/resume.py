"""Resuming a session: choosing it, and the notice that the user sees. The notice is never sent to a model."""

import asyncio
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal, assert_never

from holdfast.cli.delete_session import delete_session
from holdfast.cli.prompts import confirm
from holdfast.cli.terminal.console import Console, wants_plain
from holdfast.cli.terminal.keyboard import LineKeyboard
from holdfast.cli.terminal.picker import PREVIEW_ROWS, Choice, Selection, pick
from holdfast.cli.terminal.wrap import ellipsize, pad
from holdfast.cli.views.session_table import first_words, folder_of, state
from holdfast.core import (
    SessionId,
    SystemClock,
    Value,
    escape_invisible,
    escape_to_one_line,
    format_age,
    pluralize,
)
from holdfast.core.errors import HoldfastError, InvalidInput, SessionNotFound
from holdfast.core.events import (
    Event,
    MessagePosted,
    ModelReplied,
    RecordedEvent,
    SessionPinned,
    SessionRenamed,
)
from holdfast.core.projection import without_rewound
from holdfast.store import SessionSummary, Store, chosen_name, wait_until_released

_ESCAPE = "\x1b"
"""Of the Esc key, or of an arrow: no part of a name."""


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


FIRST_CHOICES = 500
_NAME = 16
_WORDS = 120


class Resumable(Value):
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
    found = await store.sessions(limit=FIRST_CHOICES)
    if not found:
        raise SessionNotFound("there are no sessions yet", hint="start one with: holdfast")
    return await _SessionPicker(store, console, found).run(is_plain=wants_plain(is_plain))


class _SessionPicker:
    """The list of sessions, with what can be done to them. The first ones are there at once, the others soon after."""

    def __init__(self, store: Store, console: Console, first: Sequence[SessionSummary]) -> None:
        self._store = store
        self._console = console
        self._now_ms = SystemClock().now_ms()
        self._count = len(first)
        self._selection = Selection([_choice(line, self._now_ms) for line in first])
        self._is_complete = self._count < FIRST_CHOICES

    async def run(self, *, is_plain: bool) -> SessionId | None:
        while True:
            picked = await pick(
                self._selection,
                title="resume",
                output=self._console,
                is_plain=is_plain,
                preview=self._preview,
                load_more=None if self._is_complete else self._load_rest,
            )
            if picked is None:
                return None
            session = SessionId(picked.key)
            if picked.action == "choose":
                return session
            try:
                await self._change(session, picked.action)
            except HoldfastError as error:
                self._console.say(f"{escape_invisible(str(error))}", "bad", folds=True)

    async def _load_rest(self) -> None:
        listed = await self._store.sessions()
        self._is_complete = True
        for start in range(self._count, len(listed), FIRST_CHOICES):
            self._selection.extend(
                [_choice(line, self._now_ms) for line in listed[start : start + FIRST_CHOICES]]
            )
            await asyncio.sleep(0)  # keys come first

    async def _preview(self, key: str) -> list[str]:
        try:
            return exchange_lines(await self._store.read(SessionId(key)))
        except HoldfastError as error:
            return [escape_invisible(str(error))]

    async def _change(self, session: SessionId, action: Literal["rename", "pin", "delete"]) -> None:
        summary = await self._store.summary(session)
        name = escape_invisible(summary.name or session)
        match action:
            case "rename":
                keyboard = LineKeyboard(write=lambda text: self._console.say(text, "ask", end=""))
                keyboard.open()
                try:
                    given = await keyboard.line(f"new name of {name} (Enter alone keeps it)> ")
                finally:
                    keyboard.close()
                if not given or not given.strip() or _ESCAPE in given:
                    return
                await self._record(session, SessionRenamed(name=chosen_name(given.strip())))
            case "pin":
                await self._record(session, SessionPinned(is_pinned=not summary.is_pinned))
            case "delete":
                if not await confirm(f"Delete {name} permanently?", self._console):
                    return
                await delete_session(self._store, session)
                self._selection.replace(session, None)
                return
            case _:
                assert_never(action)
        self._selection.replace(session, _choice(await self._store.summary(session), self._now_ms))

    async def _record(self, session: SessionId, event: Event) -> None:
        journal = await self._store.open(session)
        try:
            await journal.append(event)
        finally:
            await journal.release()


def exchange_lines(recorded: Sequence[RecordedEvent]) -> list[str]:
    """The last message and the start of the answer to it, in a few lines."""
    asked, answer = "", ""
    for entry in without_rewound(recorded):
        match entry.event:
            case MessagePosted(typed_text=text):
                asked, answer = text, ""
            case ModelReplied(message=message) if message.text.strip():
                answer = message.text
            case _:
                pass
    shown = [f"you: {escape_to_one_line(' '.join(asked.split()))}"] if asked else ["no messages yet"]
    lines = [escape_to_one_line(line.rstrip()) for line in answer.splitlines() if line.strip()]
    return [*shown, *(f"| {line}" for line in lines[:PREVIEW_ROWS])]


def _choice(line: SessionSummary, now_ms: int) -> Choice:
    # The end of an id is enough to name a session, and leaves room for its title.
    name, words = escape_invisible(line.name or line.id.rpartition("-")[2]), first_words(line)
    shown = (
        f"{pad(ellipsize(name, _NAME), _NAME)}{'*' if line.is_pinned else ' '}{format_age(now_ms - line.active_ms):>4} "
        f"{state(line, now_ms):<12} {pluralize(line.turns, 'turn'):<9} {ellipsize(words, _WORDS)}"
    )
    return Choice(
        key=line.id, line=shown.rstrip(), search_text=f"{shown} {name} {line.id} {words} {folder_of(line)}"
    )
