"""The chat at a terminal: connects line input, screen and keyboard with a session.

Lines may be typed at any time. Slash commands run at once; messages are queued and run one turn after another.
"""

import asyncio
import os
import shutil
import sys
from collections import deque
from collections.abc import Collection
from contextlib import nullcontext, suppress
from functools import partial

from holdfast.app import Runtime
from holdfast.cli import exit_codes
from holdfast.cli.approvals.terminal import PersonLeft, TerminalApprover
from holdfast.cli.chat.activity import FINISHING, Activity
from holdfast.cli.chat.attachments import Attached, attach_files, complete_path
from holdfast.cli.chat.folded import CommandOutputView, FoldedTexts, RunView
from holdfast.cli.chat.modes import LABELS, MODES, PLAN_REQUEST, ModeTracker, commit_edits
from holdfast.cli.chat.requests import describe_request
from holdfast.cli.chat.welcome import welcome
from holdfast.cli.input_history import input_history
from holdfast.cli.terminal.answer_stream import AnswerStream
from holdfast.cli.terminal.console import Console, wants_plain
from holdfast.cli.terminal.keyboard import Keyboard, LineKeyboard, RawKeyboard
from holdfast.cli.terminal.line_editor import REFRESH_SECONDS, EditedLines, LineSource, PlainLines
from holdfast.cli.terminal.notifier import Notifier
from holdfast.cli.terminal.program_output import ProgramOutput
from holdfast.cli.terminal.progress import ProgressIndicator
from holdfast.cli.terminal.screen import LiveScreen, PlainScreen, Screen
from holdfast.cli.terminal.status_line import status_line
from holdfast.cli.views.narrator import Narrator
from holdfast.cli.views.result import print_outcome
from holdfast.cli.views.session_log import SessionLog
from holdfast.core import PERSON, Outcome, Principal, Proposed, escape_invisible, escape_to_one_line
from holdfast.core.errors import HoldfastError
from holdfast.core.events import EscalationOpened, ModelReplied, RecordedEvent, TurnEnded
from holdfast.gate import AnyControlRequest
from holdfast.models import ModelSettings, ReplyPiece
from holdfast.session import COMMAND_MARK, AttachedText, Session, TurnDriver

_TURN_CLOSE_SECONDS = 2.0
"""How long to wait for the end of a turn whose answer is complete: its restore point is saved after the answer."""
_RESTORE_POINT_SECONDS = 60.0
"""How long a slash command waits for that. Its progress is shown meanwhile."""


class Chat:
    """The transport of a user at a terminal."""

    name = "terminal"

    def __init__(self, *, runtime: Runtime, screen: Screen, keyboard: Keyboard) -> None:
        self.runtime = runtime
        self.screen = screen
        self.session: Session
        self.activity = Activity()
        self.modes = ModeTracker()
        self.log = SessionLog()
        self.queue: deque[tuple[str, Principal]] = deque()
        """Messages that wait for the end of the turn, and whose they are."""
        self._keyboard = keyboard
        self.folded = FoldedTexts(
            partial(screen.say, folds=True), hint="/unfold" if screen.is_plain else "Ctrl-O"
        )
        self._stream = AnswerStream(screen, fold=self.folded.fold)
        self._output = ProgramOutput(screen.say, live=partial(screen.live, "output"))
        self._live_output = CommandOutputView(partial(screen.live, "output"))
        self._is_command = False
        """Whether the last line was a command of the person, whose output is shown whole."""
        self._attached: dict[str, Attached] = {}
        """By the message that is queued: the pictures and documents to send with it."""
        self._more = asyncio.Event()
        self._left = asyncio.Event()
        self._turn: asyncio.Task[Outcome | None] | None = None
        self._awaited: asyncio.Task[Outcome | None] | None = None
        """The last turn that a slash command waits for."""
        self._running_commands: set[asyncio.Task[None]] = set()
        self._switching: asyncio.Task[None] | None = None
        """The last switch of the mode by its key. Lines wait for it, because it may open the session again."""
        self._window_tokens: int | None = None
        self._titling: asyncio.Future[None] | None = None
        self.source: LineSource
        self.notifier: Notifier | None = None

    async def run(self, session: Session) -> int:
        """Read lines and show outcomes until the user leaves."""
        self.attach(session)
        self.source.open(self.interrupt)
        worker = asyncio.create_task(self._work())
        leaving = asyncio.create_task(self._left.wait())
        loading = asyncio.create_task(self._preload(session))
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
                if self._switching is not None:
                    await asyncio.wait({self._switching})
                await self.handle_line(words)
        finally:
            leaving.cancel()
            worker.cancel()
            loading.cancel()
            await asyncio.gather(worker, leaving, loading, return_exceptions=True)
            if self._titling is not None:
                self._titling.cancel()
                await asyncio.gather(self._titling, return_exceptions=True)
            if self._turn is not None and not self.session.status.has_open_turn:
                await asyncio.wait({self._turn})  # it has ended and only cleans up
            elif self._turn is not None and self.activity.doing == FINISHING:
                await asyncio.wait({self._turn}, timeout=_TURN_CLOSE_SECONDS)
            await self.screen.settle()
            self.source.close()
        if self.session.status.has_open_turn:
            self.screen.say("the turn is unfinished; resume it with: holdfast -c", folds=True)
        elif self.session.history():
            name = self.session.status.name or self.session.id
            self.screen.say(f"resume with: holdfast -r {name}", "dim", folds=True)
        await self.screen.settle()
        return exit_codes.OK

    async def _preload(self, session: Session) -> None:
        """Load what only an answer needs beside the prompt, which is there first: both take the processor."""
        await self.source.wait_until_shown()
        _command_names()
        await session.preload_model()

    def attach(self, session: Session) -> None:
        """Switch the chat to this session. Only the same session, opened again, keeps accepting edits."""
        keeps_mode = getattr(self, "session", None) is not None and self.session.id == session.id
        accepts_edits = keeps_mode and self.modes.accepts_edits
        self.session = session
        self.modes = ModeTracker()
        self.modes.accepts_edits = accepts_edits
        session.follow(self.modes)
        self._driver = TurnDriver(
            session, transport=self.name, notify=lambda text: self.screen.say(f"  {text}")
        )
        self.activity = Activity()
        session.follow(self.activity)
        self.log = SessionLog()
        session.follow(self.log)
        session.follow(self._end_block)
        self._run_view = RunView(
            live=partial(self.screen.live, "code"),
            fold=self.folded.fold,
            take_output=self._live_output.take,
            after=session.last_seq,
        )
        session.follow(self._run_view)
        session.follow(self._live_output.follow)
        session.follow(Narrator(partial(self.screen.say, folds=True), after=session.last_seq, asks=True))
        session.follow(partial(self._notify_about, session.last_seq))
        session.on_piece = self._show_piece
        session.on_output = self._show_output
        session.on_request = self._show_request
        session.receive_message = self._receive_message
        session.approver_name = self.name
        session.approver = TerminalApprover(
            Console(is_plain=self.screen.is_plain),
            session=session,
            keyboard=self._keyboard,
            commands=self._handle_line_at_question,
            exclusive_screen=self.screen.exclusive,
            notify=self.notifier.notify_at_question if self.notifier is not None else None,
            is_plain=self.screen.is_plain,
        )
        self._more.set()

    async def handle_line(self, line: str) -> None:
        """Handle a line: run a slash command at once, or queue a message."""
        line = line.strip()
        if not line:
            return
        if line.startswith("/"):
            try:
                with ProgressIndicator(
                    partial(self._progress_of, line.split()[0]), is_plain=self.screen.is_plain
                ):
                    from holdfast.cli.chat.slash import run_slash_command

                    await run_slash_command(self, line)
            except HoldfastError as error:
                self.screen.say(f"  {escape_invisible(str(error))}", "bad", folds=True)
                if error.hint:
                    self.screen.say(f"  hint: {error.hint}", folds=True)
            return
        try:
            attached = attach_files(line, self.session.workspace, model=self.session.status.model)
        except HoldfastError as error:
            self.screen.say(f"  {escape_invisible(str(error))}", "bad", folds=True)
            self.screen.say(f"  hint: {error.hint}", folds=True)
            return
        if attached.files or attached.attached_text:
            self._attached[attached.text] = attached
        for note in attached.notes:
            self.screen.say(f"  {note}", "dim", folds=True)
        for file in attached.files:
            await self.screen.picture(file.content)
        self.queue.append((attached.text, PERSON))
        if self.is_busy:
            self.screen.say(
                f"  queued ({len(self.queue)}); sent when this turn ends",
                "dim",
            )
        self._more.set()

    def _progress_of(self, command: str) -> str:
        """What a slash command does; one that runs a program, as /commit --check, can be stopped."""
        if self._awaited is None or self._awaited.done() or not self.activity.doing:
            return command
        return f"{command}: {self.activity.doing}, Ctrl-C stops it"

    async def _handle_line_at_question(self, line: str) -> None:
        # In its own task: an answer may end the question, and cancel its asker, before the command is finished.
        command = asyncio.create_task(self.handle_line(line))
        self._running_commands.add(command)
        command.add_done_callback(self._running_commands.discard)
        await asyncio.shield(command)
        self.screen.write_pending()

    @property
    def is_busy(self) -> bool:
        """Whether a turn is running or waiting."""
        return self._turn is not None and not self._turn.done()

    async def wait_until_idle(self) -> bool:
        """Whether no turn is running. A turn that is about to end gets a moment to do so, and one whose answer is complete
        the time that its restore point takes."""
        if self._turn is not None and not self._turn.done() and not self.session.escalations():
            await asyncio.wait({self._turn}, timeout=_TURN_CLOSE_SECONDS)
            if self.activity.doing == FINISHING or not self.activity.is_in_turn:
                await asyncio.wait({self._turn}, timeout=_RESTORE_POINT_SECONDS)
        return not self.is_busy

    async def run_now(self, words: str) -> Outcome | None:
        """Run a message or a command as a turn, and return its outcome; None if it was stopped. Only while no turn runs."""
        self._is_command = words.startswith(COMMAND_MARK)
        turn = self._awaited = asyncio.create_task(self._driver.run(words))
        await self._one(turn)
        return None if turn.cancelled() or turn.exception() is not None else turn.result()

    async def ask_line(self, question: str) -> str | None:
        """Read one line as the answer to a question; None if the input ends."""
        return await self._keyboard.line(question)

    def interrupt(self) -> bool:
        """Cancel the running turn and drop the queue; False if no turn is running."""
        if not self.is_busy:
            return False
        if self.queue:
            self.screen.say(
                f"  not sent: {' / '.join(escape_invisible(text) for text, _ in self.queue)}",
                "ask",
                folds=True,
            )
            self.queue.clear()
        self._stopping = asyncio.ensure_future(self.session.cancel())
        return True

    def resume(self) -> None:
        """Resume the last turn if it can continue, as after its budget was raised."""
        self._more.set()

    def leave(self) -> None:
        """End the chat. Nothing is lost."""
        self._left.set()

    def status(self) -> str:
        """The status line."""
        if self._window_tokens is None and self.activity.context_tokens:
            self._window_tokens = _context_window(self.session.status.model)
        return status_line(
            self.session,
            self.activity,
            queued=len(self.queue),
            mode=LABELS[self.modes.mode],
            window_tokens=self._window_tokens or None,
            columns=shutil.get_terminal_size().columns - 2,
        )

    async def _work(self) -> None:
        """Resume an interrupted turn, then run the queued messages in order."""
        while True:
            await self._more.wait()
            self._more.clear()
            has_waited = self._driver.has_unfinished_turn
            if has_waited:
                await self._one(asyncio.create_task(self._driver.run(None)))
            while self.queue and not self._left.is_set():
                words, principal = self.queue.popleft()
                if has_waited:
                    self.screen.say(f"  sent: {escape_to_one_line(words)}", "dim", folds=True)
                has_waited = True
                self._is_command = words.startswith(COMMAND_MARK)
                sent = self._attached.pop(words, Attached(words, ()))
                added = sent.attached_text
                if self.modes.mode == "plan" and not self._is_command:
                    added = added or AttachedText(len(words), ())
                    words += PLAN_REQUEST
                await self._one(asyncio.create_task(self._driver.run(words, sent.files, added, principal)))

    async def _one(self, turn: asyncio.Task[Outcome | None]) -> None:
        self._turn = turn
        self.activity.begin()
        ticker = asyncio.create_task(self._redraw_regularly())
        # In plain mode there is no status line, so progress is printed.
        with (
            ProgressIndicator(lambda: self.activity.doing, is_plain=True)
            if self.screen.is_plain
            else nullcontext()
        ):
            await asyncio.wait({turn})
        ticker.cancel()
        self.activity.give_up()
        self._stream.end()
        self._output.end()
        self._live_output.end()
        self._run_view.cut_off()
        self._live_output.clear()
        if turn.cancelled():
            self.screen.say("  stopped; completed actions are not undone", "ask")
        elif isinstance(turn.exception(), PersonLeft):
            self.leave()
        elif isinstance(error := turn.exception(), HoldfastError):
            self.screen.say(f"  {escape_invisible(str(error))}", "bad", folds=True)
            if error.hint:
                self.screen.say(f"  hint: {error.hint}", folds=True)
        elif (outcome := turn.result()) is not None:
            if not isinstance(outcome, Proposed):
                print_outcome(outcome, self.screen, in_chat=True)
            await self._end_of_turn()
        if self.screen.is_plain and not self.queue:
            self.screen.say("  ready")  # without a spinner, the end of a turn must be announced
        await self.screen.settle()

    async def _end_of_turn(self) -> None:
        match self.modes.mode:
            case "edits" if not self.session.status.has_open_turn:
                await self._commit_edits()
            case "plan" if not self._is_command:
                self.screen.say("  plan: /go carries it out in mode ask; or say what to change", "ask")
            case _:
                pass
        self._show_staged()
        self._title_once()

    def _title_once(self) -> None:
        """Ask for a title after the first turn of the session, beside the prompt. The first words stay if it fails."""
        is_first = len(self.session.history()) == 1 and not self.session.status.has_open_turn
        if self.runtime.settings.titles != "model" or not is_first or self._is_command:
            return

        async def ask(session: Session) -> None:
            with suppress(HoldfastError):
                await session.make_title()

        self._titling = asyncio.ensure_future(ask(self.session))

    async def _commit_edits(self) -> None:
        try:
            committed = await commit_edits(self.session, self.modes.staged_in_turn)
        except HoldfastError as error:
            self.screen.say(f"  not committed: {escape_invisible(str(error))}", "bad", folds=True)
            return
        if committed:
            names = ", ".join(map(escape_invisible, committed))
            self.screen.say(f"  committed (/undo takes the turn back): {names}", "good", folds=True)

    def cycle_mode(self) -> None:
        """Switch to the next mode, after the switches that were asked for before."""
        self._switching = asyncio.create_task(self._switch_mode(self._switching))

    async def _switch_mode(self, before: "asyncio.Task[None] | None") -> None:
        if before is not None:
            await asyncio.wait({before})
        following = MODES[(MODES.index(self.modes.mode) + 1) % len(MODES)]
        await self.handle_line(f"/mode {following}")

    def _show_request(self, request: AnyControlRequest) -> None:
        """Show what another process requests of this session."""
        self.screen.say(
            f"  from {escape_invisible(request.transport)}: {describe_request(request)}", "ask", folds=True
        )

    def _receive_message(self, text: str, principal: Principal) -> None:
        """Queue a message from another process. It is never a slash command."""
        self.queue.append((text, principal))
        self._more.set()

    def _show_piece(self, piece: ReplyPiece) -> None:
        self.activity.receive(piece.kind)
        self._stream(piece)

    async def _redraw_regularly(self) -> None:
        """Keep the status line moving while a turn runs. An idle prompt draws nothing."""
        while isinstance(self.screen, LiveScreen):
            self.screen.redraw()
            await asyncio.sleep(REFRESH_SECONDS)

    def _show_output(self, text: str) -> None:
        # What the agent's own programs print passes in the live region; /logs and `holdfast show --full` have it.
        if self._is_command:
            self._output(text)
        else:
            self._live_output(text)

    def _show_staged(self) -> None:
        if staged := self.session.staged_paths():
            names = ", ".join(map(escape_invisible, staged))
            self.screen.say(
                f"  {len(staged)} staged (/diff, /commit or /reject): {names}",
                "dim",
                folds=True,
            )

    def _notify_about(self, after: int, entry: RecordedEvent) -> None:
        if entry.seq <= after or self.notifier is None:
            return
        if isinstance(entry.event, EscalationOpened):
            self.notifier("Holdfast: a call waits for your approval")
        elif isinstance(entry.event, TurnEnded):
            self.notifier("Holdfast: the agent waits for you")

    def _end_block(self, entry: RecordedEvent) -> None:
        if isinstance(entry.event, ModelReplied):
            self._stream.end()


def _command_names() -> Collection[str]:
    """The slash commands. Their modules load beside the first prompt."""
    from holdfast.cli.chat.slash import COMMANDS

    return COMMANDS.keys()


def _context_window(model: str) -> int:
    from holdfast.models import price

    found = price(model)
    return (found.context_tokens if found is not None else None) or 0


def _without_keys(settings: ModelSettings) -> dict[str, str]:
    """The environment without API keys, which no other program is given."""
    from holdfast.models import key_variables

    keys = key_variables(settings)
    return {name: value for name, value in os.environ.items() if name not in keys}


async def chat_at_terminal(runtime: Runtime, session: Session, *, is_plain: bool | None = None) -> int:
    """Chat with a session until the user leaves."""
    if wants_plain(is_plain):
        plain = PlainScreen()
        lines = LineKeyboard(write=lambda text: print(text, end="", file=sys.stderr, flush=True))
        chat = Chat(runtime=runtime, screen=plain, keyboard=lines)
        chat.source = PlainLines(plain, lines)
    else:
        screen = LiveScreen()
        chat = Chat(runtime=runtime, screen=screen, keyboard=RawKeyboard())
        chat.notifier = Notifier(
            screen.focus,
            notify=runtime.settings.notify.terminal,
            command=runtime.settings.notify.command,
            environ=_without_keys(runtime.settings.model_requests),
        )
        history = input_history(runtime.home)
        chat.source = EditedLines(
            screen,
            history=history,
            status=chat.status,
            words=_command_names,
            paths=lambda start: complete_path(start, chat.session.workspace),
            unfold=chat.folded.unfold,
            cycle_mode=chat.cycle_mode,
        )
    welcome(chat.screen, session)
    return await chat.run(session)
