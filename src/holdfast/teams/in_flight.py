"""Letters on their way: which session answers which letter now, and how often it was handed on."""

import asyncio
from typing import Literal

from holdfast.core import Error, SessionId, Value, is_success, pluralize
from holdfast.teams.contract import TeamMessage, TeamReply
from holdfast.teams.errors import TooManyHops
from holdfast.teams.pairs import Pair

MessageState = Literal["queued", "working", "answered", "failed"]


class InFlight:
    """One letter from the moment it is taken in until its answer is fetched or forgotten."""

    def __init__(self, message: TeamMessage, pair: Pair) -> None:
        self.message = message
        self.pair = pair
        self.state: MessageState = "queued"
        self.reply: TeamReply | None = None
        self.task: asyncio.Task[TeamReply] | None = None
        self.is_cancelled_by_operator = False
        """Whether an operator stopped it, and not the end of the process."""

    def finish(self, reply: TeamReply) -> None:
        """It has its answer."""
        self.reply = reply
        self.state = "answered" if is_success(reply.outcome) else "failed"


class MessageStatus(Value):
    """A letter for whoever asks about it."""

    message: str
    pair: str
    state: MessageState
    hops: int
    reply: TeamReply | None = None


class InFlightTable:
    """Every letter of this process; of those that have ended, the latest few."""

    def __init__(self, *, keep: int = 1000) -> None:
        self._keep = keep
        self._in_flight_table: dict[str, InFlight] = {}
        self._working: dict[SessionId, InFlight] = {}

    @staticmethod
    def hop_refusal(message: TeamMessage, max_hops: int) -> TeamReply | None:
        """The answer to a letter that was handed on too often; None for one that may go on."""
        if message.hops <= max_hops:
            return None
        text = f"this question was handed on {pluralize(message.hops, 'time')}"
        hint = "answer with what you know; max_hops in the roster is the limit"
        return TeamReply(outcome=Error(message=text, code=TooManyHops.code, hint=hint))

    def add(self, message: TeamMessage, pair: Pair) -> InFlight:
        """Take a letter in."""
        ended = [id for id, each in self._in_flight_table.items() if each.reply is not None]
        for id in ended[: max(0, len(ended) - self._keep)]:
            del self._in_flight_table[id]
        in_flight = self._in_flight_table[message.id] = InFlight(message, pair)
        return in_flight

    def current(self, session: SessionId) -> InFlight | None:
        """The letter that a session answers now."""
        return self._working.get(session)

    def set_current(self, session: SessionId, in_flight: InFlight) -> None:
        """This letter is being answered there."""
        in_flight.state = "working"
        self._working[session] = in_flight

    def clear_current(self, session: SessionId) -> None:
        """The session answers nothing any more."""
        self._working.pop(session, None)

    def statuses(self, pair: Pair) -> list[MessageStatus]:
        """The letters of one pair, oldest first."""
        return [status_of(each) for each in self._in_flight_table.values() if each.pair == pair]


def status_of(in_flight: InFlight) -> MessageStatus:
    """What is known of a letter."""
    return MessageStatus(
        message=in_flight.message.id,
        pair=str(in_flight.pair),
        state=in_flight.state,
        hops=in_flight.message.hops,
        reply=in_flight.reply,
    )
