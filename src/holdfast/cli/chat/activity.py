"""The current activity of a session, derived from its events."""

import time

from holdfast.cli.terminal.progress import ProgressIndicator
from holdfast.core.errors import EngineNotBuilt
from holdfast.core.events import (
    CallIntended,
    CallSettled,
    CodePosted,
    HistoryCompacted,
    MessagePosted,
    ModelAsked,
    ModelFailed,
    ModelReplied,
    Noted,
    RecordedEvent,
    RunEnded,
    RunStarted,
    SessionRewound,
    SessionTitled,
    TurnEnded,
    TurnReopened,
)
from holdfast.models import PieceKind
from holdfast.session import Session

FINISHING = "finishing"
"""The answer is complete; the turn ends once its restore point is saved."""

_STARTING = "starting"
_RECEIVED: dict[PieceKind, str] = {"text": "answering", "thinking": "thinking", "retry": "retrying"}


class Activity:
    """Follows a session. `doing` is empty while it is idle."""

    def __init__(self) -> None:
        self.doing = ""
        self.context_tokens = 0
        self._since = time.monotonic()
        self.is_in_turn = False

    def __call__(self, entry: RecordedEvent) -> None:
        match event := entry.event:
            case MessagePosted() | CodePosted() | TurnReopened():
                self.begin()
                self.is_in_turn = True
            case ModelAsked():
                if not self.is_in_turn:
                    self._since = time.monotonic()
                self.doing = "waiting for the model"
            case ModelReplied():
                self.doing = "calling tools" if event.message.tool_calls else FINISHING
                self.context_tokens = event.usage.input_tokens + event.usage.output_tokens
            case RunStarted() | Noted(code="engine-ready"):
                self.doing = "running code"
            case Noted(code=EngineNotBuilt.code):
                self.doing = "building the sandbox"
            case CallIntended():
                self.doing = event.call.operation
            case CallSettled() | RunEnded():
                self.doing = "continuing"
            case HistoryCompacted() | ModelFailed() | SessionTitled():
                self.doing = "continuing" if self.is_in_turn else ""
            case TurnEnded():
                self.is_in_turn = False
                self.doing = ""
            case SessionRewound():
                self.context_tokens = 0  # unknown until the next model reply
            case _:
                pass

    def begin(self) -> None:
        """A turn was asked for. Its first event comes when the restore point before it is made, which takes a while at first."""
        if self.doing != _STARTING:
            self._since, self.doing = time.monotonic(), _STARTING

    def give_up(self) -> None:
        """The turn that was asked for is over, even if it never began."""
        if not self.is_in_turn:
            self.doing = ""

    def receive(self, kind: PieceKind) -> None:
        """The model sent a piece of its reply."""
        self.doing = _RECEIVED[kind]

    @property
    def seconds(self) -> float:
        """Seconds since the turn started."""
        return time.monotonic() - self._since


def progress_of(session: Session, *, is_plain: bool | None = None) -> ProgressIndicator:
    """A progress indicator that shows the current activity of a session."""
    activity = Activity()
    session.follow(activity)
    return ProgressIndicator(lambda: activity.doing, is_plain=is_plain)
