"""Messages in flight: which session is answering which message, and their status."""

import asyncio
from typing import Literal

from holdfast.core import Error, SessionId, Value, is_success, pluralize
from holdfast.teams.contract import TeamMessage, TeamReply
from holdfast.teams.errors import TooManyHops
from holdfast.teams.pairs import Pair

MessageState = Literal["queued", "working", "answered", "failed"]


class InFlight:
    """One message from the moment the broker accepts it, with its reply once there is one."""

    def __init__(self, message: TeamMessage, pair: Pair) -> None:
        self.message = message
        self.pair = pair
        self.state: MessageState = "queued"
        self.reply: TeamReply | None = None
        self.task: asyncio.Task[TeamReply] | None = None
        self.is_cancelled_by_operator = False
        """Whether an operator cancelled it, rather than the end of the process."""

    def finish(self, reply: TeamReply) -> None:
        """Record the reply."""
        self.reply = reply
        self.state = "answered" if is_success(reply.outcome) else "failed"


class MessageStatus(Value):
    """The status of a message, as reported to callers."""

    message: str
    pair: str
    state: MessageState
    hops: int
    reply: TeamReply | None = None


class InFlightTable:
    """The messages of this process: all that are in flight, and the latest that are finished."""

    def __init__(self, *, keep: int = 1000) -> None:
        self._keep = keep
        self._in_flight_table: dict[str, InFlight] = {}
        self._working: dict[SessionId, InFlight] = {}

    @staticmethod
    def hop_refusal(message: TeamMessage, max_hops: int) -> TeamReply | None:
        """The reply to a message that exceeded the hop limit; None if it did not."""
        if message.hops <= max_hops:
            return None
        text = f"this question was forwarded {pluralize(message.hops, 'time')}"
        hint = "answer with what you know; max_hops in the roster sets the limit"
        return TeamReply(outcome=Error(message=text, code=TooManyHops.code, hint=hint))

    def add(self, message: TeamMessage, pair: Pair) -> InFlight:
        """Accept a message."""
        ended = [id for id, each in self._in_flight_table.items() if each.reply is not None]
        for id in ended[: max(0, len(ended) - self._keep)]:
            del self._in_flight_table[id]
        in_flight = self._in_flight_table[message.id] = InFlight(message, pair)
        return in_flight

    def waiting(self, pair: Pair) -> int:
        """How many messages from one team to another have no reply yet, in all threads."""
        return sum(
            each.reply is None and each.pair.has_same_teams(pair) for each in self._in_flight_table.values()
        )

    def current(self, session: SessionId) -> InFlight | None:
        """The message that a session is answering."""
        return self._working.get(session)

    def set_current(self, session: SessionId, in_flight: InFlight) -> None:
        """Mark a message as being answered by a session."""
        in_flight.state = "working"
        self._working[session] = in_flight

    def clear_current(self, session: SessionId) -> None:
        """Mark a session as not answering any message."""
        self._working.pop(session, None)

    def tasks(self) -> "set[asyncio.Task[TeamReply]]":
        """The tasks of the messages in flight."""
        tasks = (each.task for each in self._in_flight_table.values())
        return {task for task in tasks if task is not None and not task.done()}

    def statuses(self, pair: Pair) -> list[MessageStatus]:
        """The messages of one pair, oldest first."""
        return [status_of(each) for each in self._in_flight_table.values() if each.pair == pair]


def status_of(in_flight: InFlight) -> MessageStatus:
    """The status of a message in flight."""
    return MessageStatus(
        message=in_flight.message.id,
        pair=str(in_flight.pair),
        state=in_flight.state,
        hops=in_flight.message.hops,
        reply=in_flight.reply,
    )
