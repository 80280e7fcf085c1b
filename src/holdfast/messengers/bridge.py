"""The bridge between a messenger and sessions: each thread is a session, and a member's button answers a waiting call.

Everything goes through `session.send` and the gate, as from any other transport. What arrives is on disk before the service may
forget it, is handled in order within its thread, and is handled once: the journal knows each message by its id.
"""

import asyncio
import contextlib
import logging
import re
from collections import deque
from collections.abc import Coroutine, Sequence
from pathlib import Path

from holdfast.app import Runtime
from holdfast.core import (
    Clock,
    Escalation,
    EscalationId,
    Needs,
    Outcome,
    Response,
    SessionId,
    digest,
    escape_invisible,
    is_question,
    named_person,
)
from holdfast.core.approval_text import describe_effect, describe_facts
from holdfast.core.errors import EscalationUnknown, HoldfastError, SessionNotFound
from holdfast.core.events import MessagePosted, RecordedEvent
from holdfast.gate import session_link
from holdfast.messengers.commands import run_command
from holdfast.messengers.contract import (
    Button,
    Incoming,
    IncomingMessage,
    Messenger,
    MessengerError,
    PressedButton,
)
from holdfast.messengers.inbox import Inbox
from holdfast.services import answer_text, describe_outcome, exact_call
from holdfast.session import MessengerSettings, Session
from holdfast.world import Proposal

DIGEST_LETTERS = 32
"""How much of a call's digest a button carries; a service may limit its value to 64 bytes."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_LOG = logging.getLogger(__name__)
_Kept = tuple[Path, IncomingMessage]
"""A message and its file in the inbox."""


class Bridge:
    """Serves the threads of one messenger until it is cancelled."""

    def __init__(
        self, name: str, messenger: Messenger, settings: MessengerSettings, *, runtime: Runtime, clock: Clock
    ) -> None:
        self.name = name
        self.messenger = messenger
        self.runtime = runtime
        self._settings = settings
        self._clock = clock
        self._inbox = Inbox(runtime.home.root / "messengers" / name)
        self._queues: dict[str, asyncio.Queue[_Kept]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._known: dict[SessionId, set[str]] = {}
        self._files: dict[str, Path] = {}
        """By message: its file in the inbox, until it is recorded or handled."""
        self._shown_whole: set[EscalationId] = set()
        """The calls that a member has seen whole, so that a button may approve them."""
        self._shown_changes: dict[str, str] = {}
        """By thread: the digest of the staged changes that were sent there last."""
        self._seen_changes: dict[str, str] = {}
        """By message: what had been sent to its thread when it arrived. Its author cannot mean what came later."""
        self._recent: dict[str, deque[float]] = {}
        self._is_stopping = False

    async def run(self) -> None:
        """Finish what was left, then receive until cancelled."""
        try:
            await self._resume_turns()
            for path, item in self._inbox.items():
                if item.sender in self._settings.members:  # not one who was removed since
                    self._accept(path, item)
                else:
                    self._inbox.remove(path)
            await self.messenger.run(self.receive)
        finally:
            self._is_stopping = True
            for id in self._known:
                if (session := self.runtime.get(id)) is not None:
                    await session.close()  # its turn stays open, for the next process
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def receive(self, item: Incoming) -> None:
        """Keep an item and let it be handled. What a stranger sends is dropped without a word."""
        if item.sender not in self._settings.members:
            return
        self._accept(await asyncio.to_thread(self._inbox.put, item), item)

    def thread_session(self, thread: str, number: int) -> SessionId:
        """The id of a thread's session; `/new` starts one with the next number."""
        return SessionId(f"{self.name}-{_UNSAFE.sub('-', thread)}-{number}")

    def live_session(self, thread: str) -> Session | None:
        """The session of a thread, if it is open here."""
        ids = [each.id for each in self.runtime.live_sessions.all()]
        prefix = self.thread_session(thread, 0).removesuffix("0")
        found = [id for id in ids if id.startswith(prefix) and id.removeprefix(prefix).isdecimal()]
        return self.runtime.get(max(found, key=lambda id: int(id.removeprefix(prefix)))) if found else None

    async def open_session(self, thread: str, channel: str, *, is_new: bool = False) -> Session:
        """The session of a thread: the newest, or a new one."""
        number = 0
        while await self._exists(self.thread_session(thread, number + 1)):
            number += 1
        if number and not is_new:
            id = self.thread_session(thread, number)
            session = self.runtime.get(id) or await self.runtime.resume(id)
        else:
            chosen = self._settings.channels.get(channel, self._settings)
            workspace = chosen.workspace or self._settings.workspace
            session = await self.runtime.create(
                session=self.thread_session(thread, number + 1),
                workspace=Path(workspace).expanduser() if workspace else None,
                policy=chosen.policy or self._settings.policy or None,
                model=chosen.model or self._settings.model or None,
                budget=chosen.budget or self._settings.budget or None,
                description=thread,
            )
        self._attach(session, thread)
        return session

    async def say(self, thread: str, text: str) -> bool:
        """Send a text in as many messages as it needs. What the service does not take is logged. Returns whether it took all."""
        try:
            for start in range(0, len(text), self.messenger.max_text):
                await self.messenger.say(thread, text[start : start + self.messenger.max_text])
        except MessengerError as error:
            _LOG.warning("%s: a message was not sent: %s", self.name, error)
            return False
        return True

    def has_seen_changes(self, item: IncomingMessage, session: Session) -> bool:
        """Whether what is staged is what the thread had been sent when a message arrived."""
        return self._seen_changes.get(item.id) == _digest_of_changes(session)

    async def show_changes(self, thread: str, session: Session) -> None:
        """Send what is staged: short as text, long as a file."""
        staged = session.proposals()
        self._shown_changes[thread] = _digest_of_changes(session)
        diff = escape_invisible("".join(each.diff for each in staged))
        names = ", ".join(escape_invisible(each.path) for each in staged)
        summary = f"{len(staged)} staged, not committed: {names}"[: self.messenger.max_text // 2]
        hint = "Answer with /commit or /reject."
        runs = "".join(f"\n{line}" for line in _runs_of(staged))
        whole = f"{summary}{runs}\n\n{diff}\n{hint}"
        if len(whole) <= self.messenger.max_text:
            is_sent = await self.say(thread, whole)
        else:
            is_sent = await self._send_file(thread, f"{summary}{runs}\n\n{diff}", f"{summary}\n{hint}")
        if not is_sent:
            self._shown_changes.pop(thread, None)

    async def _send_file(self, thread: str, content: str, text: str) -> bool:
        try:
            await self.messenger.send_file(thread, "changes.diff", content.encode(), text)
        except MessengerError as error:
            _LOG.warning("%s: a file was not sent: %s", self.name, error)
            return False
        return True

    # -- what arrives

    def _accept(self, path: Path, item: Incoming) -> None:
        if isinstance(item, IncomingMessage):
            self._files[item.id] = path
            self._seen_changes[item.id] = self._shown_changes.get(item.thread, "")
        if isinstance(item, PressedButton):
            self._start(self._handle_press(path, item))
        elif item.text.strip().startswith("/cancel"):
            self._start(self._handle(path, item))  # it must not wait for the turn that it cancels
        elif (question := self._open_question(item.thread)) is not None and not item.text.startswith("/"):
            self._start(self._answer_question(path, item, *question))
        else:
            self._queue(item.thread).put_nowait((path, item))

    def _start(self, work: "asyncio._CoroutineLike[None]") -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _queue(self, thread: str, open_turn: Session | None = None) -> "asyncio.Queue[_Kept]":
        if thread not in self._queues:
            self._queues[thread] = asyncio.Queue()
            self._start(self._serve(thread, self._queues[thread], open_turn))
        return self._queues[thread]

    async def _serve(self, thread: str, queue: "asyncio.Queue[_Kept]", open_turn: Session | None) -> None:
        """Handle the messages of a thread one after the other, after the turn that an earlier process left open."""
        if open_turn is not None:
            await self._finish_turn(thread, open_turn)
        while True:
            await self._handle(*await queue.get())

    async def _handle(self, path: Path, item: IncomingMessage) -> None:
        try:
            text = item.text.strip()
            if self._is_too_fast(item.sender):
                await self.say(item.thread, "Too many messages in a minute; this one was not read.")
            elif text.startswith("/"):
                await run_command(self, item, text)
            elif text:
                await self._send(item, text)
        except HoldfastError as error:
            hint = f"\n{error.hint}" if error.hint else ""
            await self.say(item.thread, escape_invisible(f"{error}{hint}"))
        except Exception:
            _LOG.exception("%s: a message was not handled", self.name)
            await self.say(item.thread, "This message could not be handled; the log says why.")
        self._forget(item, path)

    def _forget(self, item: IncomingMessage, path: Path) -> None:
        self._seen_changes.pop(item.id, None)
        self._files.pop(item.id, None)
        self._inbox.remove(path)

    async def _send(self, item: IncomingMessage, text: str) -> None:
        session = await self.open_session(item.thread, item.channel)
        await self._finish_turn(item.thread, session)
        if item.id in self._known[session.id]:
            return  # it arrived twice, or was recorded before a restart
        member = named_person(self._settings.members[item.sender])
        sent = session.send(text, principal=member, transport=self.name, message=item.id)
        await self._report(item.thread, session, await self._outcome_of(sent))

    async def _outcome_of(self, turn: Coroutine[None, None, Outcome | None]) -> Outcome | None:
        """Run a turn in its own task, which `/cancel` ends; None if it did."""
        task = asyncio.create_task(turn)
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()
        if not task.cancelled():
            return task.result()
        if self._is_stopping:
            raise asyncio.CancelledError
        return None

    async def _finish_turn(self, thread: str, session: Session) -> None:
        if session.status.has_open_turn or session.status.can_reopen_turn:
            await self._report(thread, session, await self._outcome_of(session.advance()))

    async def _report(self, thread: str, session: Session, outcome: Outcome | None) -> None:
        if outcome is None:
            return
        answer = answer_text(getattr(outcome, "value", None))
        if answer:
            await self.say(thread, escape_invisible(answer))
        if session.proposals():
            await self.show_changes(thread, session)
        elif not answer or isinstance(outcome, Needs):
            await self.say(thread, describe_outcome(outcome))

    async def _resume_turns(self) -> None:
        """Continue the turns that were open when the last process ended."""
        for summary in await self.runtime.store.sessions():
            if summary.activity == "ready" or not summary.id.startswith(f"{self.name}-"):
                continue
            with contextlib.suppress(HoldfastError):
                session = await self.runtime.resume(summary.id)
                self._attach(session, summary.description)
                self._queue(summary.description, session)

    def _attach(self, session: Session, thread: str) -> None:
        if session.id in self._known:
            return
        known = self._known[session.id] = set()

        def remember(entry: RecordedEvent) -> None:
            if isinstance(entry.event, MessagePosted):
                known.add(entry.event.message)
                if (path := self._files.pop(entry.event.message, None)) is not None:
                    self._inbox.remove(path)  # the journal has it, and whoever deletes the session deletes it

        async def ask(escalation: Escalation) -> None:
            await self._ask(thread, session, escalation)

        session.follow(remember)
        session.approver, session.approver_name = ask, self.name

    async def _exists(self, id: SessionId) -> bool:
        try:
            await self.runtime.store.summary(id)
        except SessionNotFound:
            return False
        return True

    def _is_too_fast(self, sender: str) -> bool:
        recent = self._recent.setdefault(sender, deque())
        now = self._clock.monotonic()
        while recent and now - recent[0] >= 60:
            recent.popleft()
        recent.append(now)
        return len(recent) > self._settings.messages_per_minute

    # -- approvals

    def _open_question(self, thread: str) -> tuple[Session, Escalation] | None:
        session = self.live_session(thread)
        waiting = session.escalations() if session is not None else ()
        question = next((each for each in waiting if is_question(each)), None)
        return None if session is None or question is None else (session, question)

    async def _answer_question(
        self, path: Path, item: IncomingMessage, session: Session, question: Escalation
    ) -> None:
        name = self._settings.members[item.sender]
        response = Response(verdict="approve", reason=item.text)
        try:
            await session.resolve(question.id, response, principal=named_person(name), transport=self.name)
        except HoldfastError as error:
            await self.say(item.thread, escape_invisible(str(error)))
        self._forget(item, path)

    async def _ask(self, thread: str, session: Session, escalation: Escalation) -> None:
        """Show a waiting call, with buttons if it is shown whole, and leave the answer to a button or another transport."""
        lines = exact_call(escalation.call, session.workspace)
        head = [describe_effect(escalation), *describe_facts(escalation)]
        link = session_link(self.runtime.home, session.id)
        also = ["", f"Also at {link}"] if link else []
        whole = "\n".join([*head, "", *lines, *also])
        key = f"{escalation.id}:{escalation.digest[:DIGEST_LETTERS]}"
        try:
            if is_question(escalation):
                await self.say(thread, "\n".join([*lines, "", "Your next message is the answer.", *also]))
            elif len(whole) <= self.messenger.max_text:
                buttons = (
                    Button(label="Approve once", value=f"y:{key}"),
                    Button(label="Deny", value=f"n:{key}"),
                )
                self._shown_whole.add(escalation.id)
                await self.messenger.ask(thread, whole, buttons)
            else:
                cut = "\n".join(head)[: self.messenger.max_text - 500]
                place = f"here: {link}" if link else "on your machine: holdfast waiting"
                text = (
                    f"{cut}\n\nThe call is too long to be shown in a message. Look at it and answer {place}"
                )
                await self.messenger.ask(thread, text, (Button(label="Deny", value=f"n:{key}"),))
        except MessengerError as error:
            _LOG.warning("%s: a question was not sent: %s", self.name, error)
        await asyncio.Event().wait()  # until it is answered: `ask_approver` cancels this

    async def _handle_press(self, path: Path, item: PressedButton) -> None:
        try:
            text = await self.press(item)
            await self.messenger.settle(item.thread, item.question, text)
        except MessengerError as error:
            _LOG.warning("%s: a question was not updated: %s", self.name, error)
        except HoldfastError as error:
            with contextlib.suppress(MessengerError):
                await self.messenger.settle(item.thread, item.question, escape_invisible(str(error)))
        self._inbox.remove(path)

    async def press(self, item: PressedButton) -> str:
        """Apply a button; returns what was done. Its value proves nothing: it must name an open call of this thread, and what was shown of it.

        Raises EscalationUnknown.
        """
        session = self.live_session(item.thread)
        waiting: Sequence[Escalation] = session.escalations() if session is not None else ()
        verb, _, key = item.value.partition(":")
        asked = next((each for each in waiting if f"{each.id}:{each.digest[:DIGEST_LETTERS]}" == key), None)
        if session is None or asked is None or verb not in ("y", "n") or is_question(asked):
            raise EscalationUnknown("This call no longer waits; nothing was done.")
        if verb == "y" and asked.id not in self._shown_whole:
            raise EscalationUnknown("This call was not shown whole here; nothing was done.")
        name = self._settings.members[item.sender]
        response = Response(verdict="approve" if verb == "y" else "deny")
        await session.resolve(asked.id, response, principal=named_person(name), transport=self.name)
        self._shown_whole.discard(asked.id)
        done = "Approved once" if verb == "y" else "Denied"
        return f"{done} by {escape_invisible(name)}: {describe_effect(asked)}"


def _digest_of_changes(session: Session) -> str:
    return digest([digest(each) for each in session.proposals()])


def _runs_of(staged: Sequence[Proposal]) -> list[str]:
    """A line for each file that another program runs or trusts."""
    return [
        f"{escape_invisible(each.path)}: this runs when you {each.runs_when}"
        for each in staged
        if each.runs_when is not None
    ]
