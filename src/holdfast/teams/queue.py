"""The durable message queue: messages sent without waiting, and notices. Both survive a restart."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from holdfast.core import Clock, Error
from holdfast.core.errors import JournalDamaged
from holdfast.store import Store
from holdfast.teams.contract import TeamMessage, TeamReply
from holdfast.teams.conversations import Conversations
from holdfast.teams.dispatch import BackgroundTasks, Dispatcher
from holdfast.teams.in_flight import InFlight, InFlightTable, MessageStatus, status_of
from holdfast.teams.pair_log import Notices, PairLog, QueuedMessages, SentMessage, pair_logs
from holdfast.teams.pairs import Pair

TRANSIENT_CODES = frozenset(["session-held", "pool-full"])
"""Error codes after which a message stays queued for another attempt."""


class MessageQueue:
    """Queues messages, has them delivered, and records their receipts."""

    def __init__(
        self,
        *,
        store: Store,
        folder: str,
        clock: Clock,
        conversations: Conversations,
        dispatcher: Dispatcher,
        in_flight_table: InFlightTable,
        tasks: BackgroundTasks,
    ) -> None:
        self._store = store
        self._folder = folder
        self._clock = clock
        self._conversations = conversations
        self._dispatcher = dispatcher
        self._in_flight_table = in_flight_table
        self._tasks = tasks

    def notices(self, pair: Pair) -> Notices:
        """The notices of a pair."""
        return Notices(self._log(pair), clock=self._clock)

    async def send(self, message: TeamMessage, pair: Pair) -> MessageStatus:
        """Queue a message durably and start its delivery."""
        await QueuedMessages(self._log(pair)).add(message)
        return status_of(self._start_delivery(message, pair))

    async def resume_pending(self, teams: set[str]) -> int:
        """Deliver the messages that an earlier process left without a receipt; return their number."""
        found = 0
        for log in await pair_logs(self._store, self._folder):
            try:
                waiting = await QueuedMessages(log).pending() if log.pair.receiver in teams else ()
            except JournalDamaged:
                continue  # `Reconciler` reports it
            for message in waiting:
                self._start_delivery(message, log.pair)
                found += 1
        return found

    async def report(self, pair: Pair) -> list[MessageStatus]:
        """The status of a pair's messages, oldest first: the queued ones, and all that this process accepted."""
        sent = await QueuedMessages(self._log(pair)).sent()
        history = await self._conversations.history(pair) if sent else None
        known = {
            each.message.id: _recorded_status(each, pair, history.reply_to(each.message) if history else None)
            for each in sent
        }
        return list((known | {each.message: each for each in self._in_flight_table.statuses(pair)}).values())

    def _start_delivery(self, message: TeamMessage, pair: Pair) -> InFlight:
        in_flight = self._in_flight_table.add(message, pair)
        in_flight.task = self._tasks.start(self._deliver(in_flight))
        return in_flight

    async def _deliver(self, in_flight: InFlight) -> TeamReply:
        queued = QueuedMessages(self._log(in_flight.pair))
        try:
            reply = await self._dispatcher.deliver(in_flight, self.notices(in_flight.pair))
        except asyncio.CancelledError:
            if in_flight.is_cancelled_by_operator and in_flight.reply is not None:
                await _shielded(queued.settle(in_flight.message.id, in_flight.reply.outcome))
            raise
        if not (isinstance(reply.outcome, Error) and reply.outcome.code in TRANSIENT_CODES):
            await _shielded(queued.settle(in_flight.message.id, reply.outcome))
        return reply

    def _log(self, pair: Pair) -> PairLog:
        return PairLog(pair, store=self._store, folder=self._folder)


async def _shielded(writing: Coroutine[Any, Any, None]) -> None:
    """Finish a write even if this task is cancelled."""
    task = asyncio.ensure_future(writing)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


def _recorded_status(sent: SentMessage, pair: Pair, answer: TeamReply | None) -> MessageStatus:
    in_flight = InFlight(sent.message, pair)
    if sent.outcome is not None:
        in_flight.finish(answer or TeamReply(outcome=sent.outcome))
    return status_of(in_flight)
