"""A conversation at a terminal. Lines come in at any time: commands act at once, messages wait for their turn.

The terminal of a person, put together: the editor or plain lines, the screen, the keyboard, and the conversation.
"""

import asyncio
import sys
from collections import deque
from contextlib import nullcontext
from functools import partial

from holdfast.app import Runtime
from holdfast.cli import exit_codes
from holdfast.cli.approvals.terminal import PersonLeft, TerminalApprover
from holdfast.cli.chat.activity import ENDS, Activity
from holdfast.cli.chat.slash import COMMANDS, perform
from holdfast.cli.terminal.answer_stream import AnswerStream
from holdfast.cli.terminal.console import Console, visible, wants_plain
from holdfast.cli.terminal.keyboard import Keyboard, LineKeyboard, RawKeyboard
from holdfast.cli.terminal.line_editor import EditedLines, LineSource, PlainLines
from holdfast.cli.terminal.progress import Progress
from holdfast.cli.terminal.screen import LiveScreen, PlainScreen, Screen
from holdfast.cli.terminal.status_line import status_line
from holdfast.cli.terminal.wrap import ellipsize
from holdfast.cli.views.narrator import Narrator
from holdfast.cli.views.result import print_outcome
from holdfast.cli.views.session_log import SessionLog
from holdfast.core import Outcome, Proposed, pluralize
from holdfast.core.errors import HoldfastError
from holdfast.core.events import ModelReplied, RecordedEvent
from holdfast.session import Session, TurnDriver

_LAST_TOUCHES_SECONDS = 2.0
"""The answer is on the screen before its turn is over: the files are kept after it, so that they can be gone back to."""


class Chat:
    """The transport of a person at a terminal."""

    name = "terminal"

    def __init__(self, *, runtime: Runtime, screen: Screen, keyboard: Keyboard) -> None:
        self.runtime = runtime
        self.screen = screen
        self.session: Session
        self.activity = Activity()
        self.log = SessionLog()
        self.queue: deque[str] = deque()
        self._keyboard = keyboard
        self._stream = AnswerStream(screen.answer, is_plain=screen.is_plain)
        self._more = asyncio.Event()
        self._left = asyncio.Event()
        self._turn: asyncio.Task[Outcome | None] | None = None
        self._obeying: set[asyncio.Task[None]] = set()
        self._window_tokens: int | None = None
        self.source: LineSource

    async def run(self, session: Session) -> int:
        """Carry lines in and outcomes out until the person leaves."""
        self.adopt(session)
        self.source.open(self.interrupt)
        worker = asyncio.create_task(self._work())
        leaving = asyncio.create_task(self._left.wait())
        try:
            while not self._left.is_set():
                line = asyncio.create_task(self.source.next())
                await asyncio.wait({line, leaving}, return_when=asyncio.FIRST_COMPLETED)
                if not line.done():
                    line.cancel()
                    await asyncio.wait({line})
                    break
                words = line.result()
                if words is None:
                    break
                await self.take(words)
        finally:
            leaving.cancel()
            worker.cancel()
            await asyncio.gather(worker, leaving, return_exceptions=True)
            if self._turn is not None and not self.session.status.has_open_turn:
                await asyncio.wait({self._turn})  # it is over and only puts things in order
            elif self._turn is not None and self.activity.doing == ENDS:
                await asyncio.wait({self._turn}, timeout=_LAST_TOUCHES_SECONDS)
            await self.screen.settle()
            self.source.close()
        if self.session.status.has_open_turn:
            self.screen.say("the turn is left as it is; holdfast -c goes on with it", folds=True)
        elif self.session.history():
            name = self.session.status.name or self.session.id
            self.screen.say(f"go on with: holdfast -r {name}", "dim", folds=True)
        await self.screen.settle()
        return exit_codes.OK

    def adopt(self, session: Session) -> None:
        """Talk with this session from here on."""
        self.session = session
        self._driver = TurnDriver(
            session, transport=self.name, notify=lambda text: self.screen.say(f"  {text}")
        )
        self.activity = Activity()
        session.follow(self.activity)
        self.log = SessionLog()
        session.follow(self.log)
        session.follow(self._end_block)
        session.follow(Narrator(partial(self.screen.say, folds=True), after=session.last_seq))
        session.on_text = self._stream
        session.approver_name = self.name
        session.approver = TerminalApprover(
            Console(is_plain=self.screen.is_plain),
            session=session,
            keyboard=self._keyboard,
            commands=self._take_at_question,
            taken=self.screen.taken,
            is_plain=self.screen.is_plain,
        )
        self._more.set()

    async def take(self, line: str) -> None:
        """A whole line of the person: a command, which acts at once, or a message, which waits for its turn."""
        line = line.strip()
        if not line:
            return
        if line.startswith("/"):
            try:
                with Progress(lambda: line.split()[0], is_plain=self.screen.is_plain):
                    await perform(self, line)
            except HoldfastError as error:
                self.screen.say(f"  {visible(str(error))}", "bad", folds=True)
                if error.hint:
                    self.screen.say(f"  hint: {error.hint}", folds=True)
            return
        self.queue.append(line)
        if self.is_busy:
            self.screen.say(
                f"  queued; {len(self.queue)} {'waits' if len(self.queue) == 1 else 'wait'} until this turn is over",
                "dim",
            )
        self._more.set()

    async def _take_at_question(self, line: str) -> None:
        # On its own: an answer may end the question, and with it whoever asked, before the command is through.
        obeying = asyncio.create_task(self.take(line))
        self._obeying.add(obeying)
        obeying.add_done_callback(self._obeying.discard)
        await asyncio.shield(obeying)
        self.screen.catch_up()

    @property
    def is_busy(self) -> bool:
        """Whether a turn runs or waits."""
        return self._turn is not None and not self._turn.done()

    async def quiet(self) -> bool:
        """Whether no turn runs; one that has said its last word is given a moment to end."""
        if self._turn is not None and not self._turn.done():
            await asyncio.wait(
                {self._turn}, timeout=0 if self.session.escalations() else _LAST_TOUCHES_SECONDS
            )
        return not self.is_busy

    def interrupt(self) -> bool:
        """End the running turn, and drop what is queued; False where none runs."""
        if not self.is_busy:
            return False
        if self.queue:
            self.screen.say(f"  not sent: {' / '.join(map(visible, self.queue))}", "ask", folds=True)
            self.queue.clear()
        self._stopping = asyncio.ensure_future(self.session.cancel())
        return True

    def resume(self) -> None:
        """Resume the last turn if it can continue, as after its budget was raised."""
        self._more.set()

    def leave(self) -> None:
        """End the conversation; nothing is lost."""
        self._left.set()

    def status(self) -> str:
        """The status line."""
        if self._window_tokens is None and self.activity.context_tokens:
            self._window_tokens = _window(self.session.status.model)
        return status_line(
            self.session, self.activity, queued=len(self.queue), window_tokens=self._window_tokens or None
        )

    async def _work(self) -> None:
        """Take up a turn that was cut off, then one message after the other."""
        while True:
            await self._more.wait()
            self._more.clear()
            if self._driver.has_unfinished_turn:
                await self._one(asyncio.create_task(self._driver.run(None)))
            while self.queue and not self._left.is_set():
                await self._one(asyncio.create_task(self._driver.run(self.queue.popleft())))

    async def _one(self, turn: asyncio.Task[Outcome | None]) -> None:
        self._turn = turn
        # Where there is no status line, what runs is told now and then.
        with Progress(lambda: self.activity.doing, is_plain=True) if self.screen.is_plain else nullcontext():
            await asyncio.wait({turn})
        self._stream.end()
        if turn.cancelled():
            self.screen.say("  stopped; what was done stays done", "ask")
        elif isinstance(turn.exception(), PersonLeft):
            self.leave()
        elif isinstance(error := turn.exception(), HoldfastError):
            self.screen.say(f"  {visible(str(error))}", "bad", folds=True)
            if error.hint:
                self.screen.say(f"  hint: {error.hint}", folds=True)
        elif (outcome := turn.result()) is not None:
            if not isinstance(outcome, Proposed):
                print_outcome(outcome, self.screen)
            self._say_what_is_staged()
        if self.screen.is_plain and not self.queue:
            self.screen.say("  ready")  # who cannot see a spinner stop has to be told
        await self.screen.settle()

    def _say_what_is_staged(self) -> None:
        if staged := self.session.proposals():
            names = ", ".join(visible(proposal.path) for proposal in staged)
            self.screen.say(
                f"  {len(staged)} staged: /diff shows, /commit makes, /reject drops {names}",
                "dim",
                folds=True,
            )

    def _end_block(self, entry: RecordedEvent) -> None:
        if isinstance(entry.event, ModelReplied):
            self._stream.end()


def _window(model: str) -> int:
    from holdfast.models import price

    found = price(model)
    return (found.context_tokens if found is not None else None) or 0


async def talk_at_terminal(runtime: Runtime, session: Session, *, is_plain: bool | None = None) -> int:
    """Talk with a session until the person leaves."""
    if wants_plain(is_plain):
        plain = PlainScreen()
        lines = LineKeyboard(write=lambda text: print(text, end="", file=sys.stderr, flush=True))
        talk = Chat(runtime=runtime, screen=plain, keyboard=lines)
        talk.source = PlainLines(plain, lines)
    else:
        screen = LiveScreen()
        talk = Chat(runtime=runtime, screen=screen, keyboard=RawKeyboard())
        history = runtime.home.root / "history"
        talk.source = EditedLines(screen, history=history, status=talk.status, words=COMMANDS.keys)
    welcome(talk.screen, session)
    return await talk.run(session)


def welcome(screen: Screen, session: Session) -> None:
    """Who, how far, what waits, what may be spent: shown to the person, not to the model."""
    name = session.status.name or session.id
    turns = len(session.history())
    if not turns:
        screen.say(f"session {name}; /help lists commands, Ctrl-D leaves", "dim", folds=True)
        return
    screen.say(
        f"{session.status.model}, policy {visible(session.status.policy)}; /help lists commands, Ctrl-D leaves",
        "dim",
        folds=True,
    )
    asked = " ".join(visible(session.history()[-1].asked).split())
    screen.say(f"  last asked: {ellipsize(asked, 60)}", "dim")
    if waiting := session.escalations():
        screen.say(f"  waits for you: {pluralize(len(waiting), 'call')}", "ask")
    if staged := session.proposals():
        screen.say(f"  staged: {', '.join(proposal.path for proposal in staged)} (/diff shows)", "ask")
