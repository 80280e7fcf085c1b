"""The post office: letters that nobody waits for and word that was left. Both outlive the process that took them in."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from holdfast.core import Clock, Error
from holdfast.core.errors import JournalDamaged
from holdfast.store import Store
from holdfast.teams.contract import TeamMessage, TeamReply
from holdfast.teams.conversations import Conversations
from holdfast.teams.dispatch import BackgroundTasks, Dispatcher
from holdfast.teams.in_flight import InFlight, InFlightTable, MessageStatus, report
from holdfast.teams.pair_log import Notices, PairLog, QueuedMessages, Sent, postboxes
from holdfast.teams.pairs import Pair

PASSING = frozenset(["session-held", "pool-full"])
"""Why a letter was not delivered this time, and may be the next."""


class MessageQueue:
    """Takes letters in, has them delivered, and keeps their receipts."""

    def __init__(
        self,
        *,
        store: Store,
        folder: str,
        clock: Clock,
        conversations: Conversations,
        delivery: Dispatcher,
        flights: InFlightTable,
        errands: BackgroundTasks,
    ) -> None:
        self._store = store
        self._folder = folder
        self._clock = clock
        self._conversations = conversations
        self._delivery = delivery
        self._flights = flights
        self._errands = errands

    def mailbox(self, pair: Pair) -> Notices:
        """Where word for a pair is left."""
        return Notices(self._postbox(pair), clock=self._clock)

    async def send(self, letter: TeamMessage, pair: Pair) -> MessageStatus:
        """Take a letter in, durably, and have it delivered."""
        await QueuedMessages(self._postbox(pair)).keep(letter)
        return report(self._post(letter, pair))

    async def take_up(self, teams: set[str]) -> int:
        """Have those delivered that an earlier process left without a receipt; returns how many."""
        found = 0
        for box in await postboxes(self._store, self._folder):
            try:
                waiting = await QueuedMessages(box).waiting() if box.pair.receiver in teams else ()
            except JournalDamaged:
                continue  # `Discovery` tells of it
            for letter in waiting:
                self._post(letter, box.pair)
                found += 1
        return found

    async def report(self, pair: Pair) -> list[MessageStatus]:
        """What became of the letters of a pair: those nobody waits for, and those this process knows; oldest first."""
        sent = await QueuedMessages(self._postbox(pair)).letters()
        history = await self._conversations.history(pair) if sent else None
        known = {
            each.letter.id: _report(each, pair, history.reply_to(each.letter) if history else None)
            for each in sent
        }
        return list((known | {each.message: each for each in self._flights.of(pair)}).values())

    def _post(self, letter: TeamMessage, pair: Pair) -> InFlight:
        flight = self._flights.begin(letter, pair)
        flight.task = self._errands.start(self._deliver(flight))
        return flight

    async def _deliver(self, flight: InFlight) -> TeamReply:
        outbox = QueuedMessages(self._postbox(flight.pair))
        try:
            reply = await self._delivery.bring(flight, self.mailbox(flight.pair))
        except asyncio.CancelledError:
            if flight.is_called_off and flight.reply is not None:
                await _wholly(outbox.settle(flight.letter.id, flight.reply.outcome))
            raise
        if not (isinstance(reply.outcome, Error) and reply.outcome.code in PASSING):
            await _wholly(outbox.settle(flight.letter.id, reply.outcome))
        return reply

    def _postbox(self, pair: Pair) -> PairLog:
        return PairLog(pair, store=self._store, folder=self._folder)


async def _wholly(writing: Coroutine[Any, Any, None]) -> None:
    """Have a receipt written, also where we are called back meanwhile."""
    task = asyncio.ensure_future(writing)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


def _report(sent: Sent, pair: Pair, answer: TeamReply | None) -> MessageStatus:
    flight = InFlight(sent.letter, pair)
    if sent.outcome is not None:
        flight.end(answer or TeamReply(outcome=sent.outcome))
    return report(flight)
