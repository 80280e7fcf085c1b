"""Letters on their way: which session answers which letter now, and how often it was handed on."""

import asyncio
from typing import Literal

from holdfast.core import Error, SessionId, Value, is_success, pluralize
from holdfast.teams.contract import TeamMessage, TeamReply
from holdfast.teams.errors import TooManyHops
from holdfast.teams.pairs import Pair

FlightState = Literal["queued", "working", "answered", "failed"]


class InFlight:
    """One letter from the moment it is taken in until its answer is fetched or forgotten."""

    def __init__(self, letter: TeamMessage, pair: Pair) -> None:
        self.letter = letter
        self.pair = pair
        self.state: FlightState = "queued"
        self.reply: TeamReply | None = None
        self.task: asyncio.Task[TeamReply] | None = None
        self.is_called_off = False
        """Whether an operator stopped it, and not the end of the process."""

    def end(self, reply: TeamReply) -> None:
        """It has its answer."""
        self.reply = reply
        self.state = "answered" if is_success(reply.outcome) else "failed"


class MessageStatus(Value):
    """A letter for whoever asks about it."""

    message: str
    pair: str
    state: FlightState
    hops: int
    reply: TeamReply | None = None


class InFlightTable:
    """Every letter of this process; of those that have ended, the latest few."""

    def __init__(self, *, keep: int = 1000) -> None:
        self._keep = keep
        self._flights: dict[str, InFlight] = {}
        self._working: dict[SessionId, InFlight] = {}

    @staticmethod
    def refuse(letter: TeamMessage, max_hops: int) -> TeamReply | None:
        """The answer to a letter that was handed on too often; None for one that may go on."""
        if letter.hops <= max_hops:
            return None
        message = f"this question was handed on {pluralize(letter.hops, 'time')}"
        hint = "answer with what you know; max_hops in the roster is the limit"
        return TeamReply(outcome=Error(message=message, code=TooManyHops.code, hint=hint))

    def begin(self, letter: TeamMessage, pair: Pair) -> InFlight:
        """Take a letter in."""
        ended = [id for id, each in self._flights.items() if each.reply is not None]
        for id in ended[: max(0, len(ended) - self._keep)]:
            del self._flights[id]
        flight = self._flights[letter.id] = InFlight(letter, pair)
        return flight

    def working(self, session: SessionId) -> InFlight | None:
        """The letter that a session answers now."""
        return self._working.get(session)

    def set_working(self, session: SessionId, flight: InFlight) -> None:
        """This letter is being answered there."""
        flight.state = "working"
        self._working[session] = flight

    def rest(self, session: SessionId) -> None:
        """The session answers nothing any more."""
        self._working.pop(session, None)

    def of(self, pair: Pair) -> list[MessageStatus]:
        """The letters of one pair, oldest first."""
        return [report(each) for each in self._flights.values() if each.pair == pair]

    def get(self, message: str) -> InFlight | None:
        """The letter with this id."""
        return self._flights.get(message)


def report(flight: InFlight) -> MessageStatus:
    """What is known of a letter."""
    return MessageStatus(
        message=flight.letter.id,
        pair=str(flight.pair),
        state=flight.state,
        hops=flight.letter.hops,
        reply=flight.reply,
    )
