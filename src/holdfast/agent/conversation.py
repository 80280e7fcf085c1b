"""The conversation and the running turn, folded from the journal: everything the loop needs to know what comes next."""

from holdfast.core import CallId, Message, ModelMessage, ToolMessage, ToolReturn, UserMessage
from holdfast.core.events import (
    AnyEvent,
    CallIntended,
    CallRefused,
    CodePosted,
    EscalationOpened,
    HistoryCompacted,
    MessagePosted,
    ModelReplied,
    Recorded,
    RunEnded,
    RunParked,
    RunStarted,
    SessionOpened,
    ToolReturned,
    TurnEnded,
    TurnReopened,
)
from holdfast.core.fold import Fold


class Conversation(Fold):
    """Messages as the model sees them, and how far the running turn has come."""

    def reset(self) -> None:
        self.turn = 0
        self.is_open = False
        self.steps = 0
        self.reply: ModelMessage | None = None
        self.posted_code: CodePosted | None = None
        self.returned: dict[str, ToolReturn] = {}
        self.runs = 0
        self.run: RunStarted | None = None
        self.parked: RunParked | None = None
        self.ended: RunEnded | None = None
        self.ended_for: str | None = None
        self.guest_state: str | None = None
        self.last_call = 0
        self.answered_calls = 0
        self.summary: str | None = None
        self._messages: list[tuple[int, Message]] = []

    def apply(self, event: AnyEvent, entry: Recorded) -> None:
        match event:
            case SessionOpened():
                pass
            case MessagePosted():
                self._begin(event.turn)
                self._messages.append((event.turn, UserMessage(text=event.text)))
            case CodePosted():
                self._begin(event.turn)
                self.posted_code = event
            case ModelReplied():
                self.steps = event.step
                self.reply = event.message
                self.returned = {}
                self._messages.append((event.turn, event.message))
            case RunStarted():
                self.runs, self.run, self.parked = event.run, event, None
            case RunParked():
                self.parked = event
            case RunEnded():
                self.ended_for = self.run.tool_call if self.run is not None else None
                self.run, self.parked, self.ended = None, None, event
                self.guest_state = event.state or self.guest_state
                self.answered_calls = self.last_call
            case ToolReturned():
                self._take_return(event)
            case CallIntended() | CallRefused():
                self._count(event.call.id)
            case EscalationOpened():
                self._count(event.escalation.call.id)
            case HistoryCompacted():
                self.summary = event.summary
                self._messages = [each for each in self._messages if each[0] > event.through]
            case TurnEnded():
                self._end(event.turn)
            case TurnReopened():
                self.is_open = True
            case _:
                pass

    @property
    def next_call(self) -> int:
        """The number of the next call. Calls of a tool whose return is not recorded yet are asked for again."""
        return self.answered_calls + 1

    def messages_through(self, turn: int) -> tuple[Message, ...]:
        """The messages of all turns up to and with this one that are not summarised yet, an older summary first."""
        head = self.messages[:1] if self.summary is not None else ()
        older = tuple(message for number, message in self._messages if number <= turn)
        return head + older if older else ()

    @property
    def messages(self) -> tuple[Message, ...]:
        """What the model is given: the summary of compacted turns, then every message since."""
        head: tuple[Message, ...] = ()
        if self.summary is not None:
            head = (UserMessage(text=f"[Summary of the conversation so far]\n{self.summary}"),)
        return head + tuple(message for _, message in self._messages)

    def _begin(self, turn: int) -> None:
        self.turn, self.is_open = turn, True
        self.steps = self.runs = self.last_call = self.answered_calls = 0
        self.reply = self.posted_code = self.run = self.parked = self.ended = None
        self.returned = {}

    def _end(self, turn: int) -> None:
        self.is_open = False
        self.run = self.parked = None
        # No provider takes a call without its return, so what a cut-off turn left open is answered for it.
        for part in self.reply.tool_calls if self.reply else ():
            if part.id not in self.returned:
                content = "The turn ended before this call was answered."
                self._take_return(
                    ToolReturned(turn=turn, tool_call=part.id, tool=part.tool, content=content, is_error=True)
                )

    def _take_return(self, event: ToolReturned) -> None:
        self.answered_calls = self.last_call
        self.returned[event.tool_call] = ToolReturn(
            id=event.tool_call, tool=event.tool, content=event.content, is_error=event.is_error
        )
        # All calls of one reply are answered in one message, so a second return joins the first.
        if self._messages and isinstance(self._messages[-1][1], ToolMessage):
            self._messages.pop()
        self._messages.append((event.turn, ToolMessage(returns=tuple(self.returned.values()))))

    def _count(self, id: CallId) -> None:
        turn, _, number = id.partition(".")
        if int(turn) == self.turn:
            self.last_call = max(self.last_call, int(number))
