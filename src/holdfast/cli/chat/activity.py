"""What a session does at the moment, told from its events."""

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
    TurnEnded,
    TurnReopened,
)
from holdfast.session import Session

FINISHING = "ends"
"""The last word was said; the files are kept, and then the turn is over."""


class Activity:
    """Follows a session; `doing` is empty while it rests."""

    def __init__(self) -> None:
        self.doing = ""
        self.context_tokens = 0
        self._since = time.monotonic()
        self._is_in_turn = False

    def __call__(self, entry: RecordedEvent) -> None:
        match event := entry.event:
            case MessagePosted() | CodePosted() | TurnReopened():
                self._is_in_turn = True
                self._since, self.doing = time.monotonic(), "starts"
            case ModelAsked():
                if not self._is_in_turn:
                    self._since = time.monotonic()
                self.doing = "thinks"
            case ModelReplied():
                self.doing = "acts" if event.message.tool_calls else FINISHING
                self.context_tokens = event.usage.input_tokens + event.usage.output_tokens
            case RunStarted() | Noted(code="engine-ready"):
                self.doing = "runs code"
            case Noted(code=EngineNotBuilt.code):
                self.doing = "builds the sandbox"
            case CallIntended():
                self.doing = event.call.operation
            case CallSettled() | RunEnded():
                self.doing = "goes on"
            case HistoryCompacted() | ModelFailed():
                self.doing = "goes on" if self._is_in_turn else ""
            case TurnEnded():
                self._is_in_turn = False
                self.doing = ""
            case SessionRewound():
                self.context_tokens = 0  # until the model is asked again, nobody knows
            case _:
                pass

    @property
    def seconds(self) -> float:
        """Since the turn began."""
        return time.monotonic() - self._since


def progress_of(session: Session, *, is_plain: bool | None = None) -> ProgressIndicator:
    """Progress that says what a session does, for as long as its turn runs."""
    activity = Activity()
    session.follow(activity)
    return ProgressIndicator(lambda: activity.doing, is_plain=is_plain)
