"""The broker: accepts messages from teams and operators and returns the members' replies.

`Dispatcher` delivers a message, `MessageQueue` keeps the messages that no caller waits for, and `Pool` keeps members
awake. A failed delivery is a reply with an error outcome; misuse raises.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from holdfast.core import Clock, Limits, SessionId
from holdfast.core.errors import InvalidInput, JournalDamaged
from holdfast.gate import InMemoryTreeBudget
from holdfast.store import SessionSummary, Store
from holdfast.teams.config.roster import Roster
from holdfast.teams.contract import TeamMessage, TeamReply
from holdfast.teams.conversations import Conversations
from holdfast.teams.dispatch import BackgroundTasks, Dispatcher
from holdfast.teams.errors import AskRefused
from holdfast.teams.history import PairHistory
from holdfast.teams.in_flight import InFlight, InFlightTable, MessageStatus
from holdfast.teams.maintenance import Maintenance, PairProblem, Reconciler
from holdfast.teams.members.factory import MemberFactory
from holdfast.teams.message_text import check_text, parse_message_id
from holdfast.teams.pair_log import Notice
from holdfast.teams.pairs import Pair, check_name
from holdfast.teams.pool import Pool
from holdfast.teams.queue import MessageQueue
from holdfast.teams.stats import TeamsStats, teams_stats

MAX_TTL_DAYS = 365.0
MAX_WAITING_MESSAGES = 100
"""Messages from one team to another without a reply, in all threads."""


class Broker:
    """Connects the teams of one roster while its `async with` block runs."""

    def __init__(
        self, *, roster: Roster, folder: Path, store: Store, factory: MemberFactory, clock: Clock
    ) -> None:
        self.roster = roster
        self._factory = factory
        settings = roster.settings
        self.pool = Pool(
            limit=settings.max_processes,
            idle_seconds=settings.idle_seconds,
            queue_seconds=settings.queue_seconds,
            clock=clock,
        )
        self.conversations = Conversations(roster=roster, folder=str(folder), store=store, factory=factory)
        self._in_flight_table, self._tasks = InFlightTable(), BackgroundTasks()
        self._tree = InMemoryTreeBudget(settings.budget)
        self._dispatcher = Dispatcher(
            settings=settings,
            conversations=self.conversations,
            factory=factory,
            pool=self.pool,
            in_flight_table=self._in_flight_table,
            tree=self._tree,
        )
        self._queue = MessageQueue(
            store=store,
            folder=str(folder),
            clock=clock,
            conversations=self.conversations,
            dispatcher=self._dispatcher,
            in_flight_table=self._in_flight_table,
            tasks=self._tasks,
        )
        self._reconciler = Reconciler(
            roster=roster, folder=folder, store=store, conversations=self.conversations
        )
        self.maintenance = Maintenance(
            roster=roster,
            conversations=self.conversations,
            dispatcher=self._dispatcher,
            pool=self.pool,
            clock=clock,
        )

    async def __aenter__(self) -> Self:
        if self.roster.settings.budget != Limits():
            for summary in await self.sessions():
                self._tree.charge(await self.conversations.spent(summary))
        self._tasks.start(self.maintenance.run_forever())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._tasks.cancel_all()
        await self.pool.close()

    async def finish_deliveries(self) -> None:
        """Wait until no message is in flight."""
        while tasks := self._in_flight_table.tasks():
            await asyncio.wait(tasks)

    async def resume_pending(self) -> int:
        """Start serving: wake the busiest members and deliver the messages an earlier process left undelivered.

        Returns the number of those messages.
        """
        self._tasks.start(self.maintenance.wake_busiest())
        return await self._queue.resume_pending(set(self.roster.teams))

    async def reconcile(self) -> list[PairProblem]:
        """Compare the members' agent homes with our journals; restore missing journals and report problems."""
        return await self._reconciler.reconcile()

    # -- messages

    async def ask(
        self,
        sender: str,
        receiver: str,
        text: str,
        *,
        thread: str = "",
        seconds: float | None = None,
        message_id: str | None = None,
        asking_session: SessionId | None = None,
    ) -> TeamReply:
        """Ask a team and wait for its answer. `asking_session` is the session whose turn asks the question.

        Raises UnknownTeam, AskRefused and InvalidInput. Every other failure, timeouts included, is an outcome.
        """
        if seconds is not None and not seconds > 0:
            raise InvalidInput(
                f"the time to wait must be more than 0 seconds, not {seconds:g}",
                hint="leave it out to wait for a whole turn",
            )
        message, pair = self._compose(sender, receiver, text, thread, message_id, asking_session)
        await self.conversations.check_threads(pair)
        refusal = self._in_flight_table.hop_refusal(message, self.roster.settings.max_hops)
        if refusal is not None:
            return refusal
        in_flight = self._in_flight_table.add(message, pair)
        return await self._run_in_task(in_flight, seconds, asking_session)

    async def send(
        self,
        sender: str,
        receiver: str,
        text: str,
        *,
        thread: str = "",
        message_id: str | None = None,
        asking_session: SessionId | None = None,
    ) -> MessageStatus:
        """Send a team a message without waiting. Delivery survives a restart; `report` shows the receipt."""
        message, pair = self._compose(sender, receiver, text, thread, message_id, asking_session)
        await self.conversations.check_threads(pair)
        refusal = self._in_flight_table.hop_refusal(message, self.roster.settings.max_hops)
        if refusal is not None:
            return MessageStatus(
                message=message.id, pair=str(pair), state="failed", hops=message.hops, reply=refusal
            )
        return await self._queue.send(message, pair)

    async def notify(
        self, sender: str, receiver: str, text: str, *, thread: str = "", ttl_days: float = 30.0
    ) -> Notice:
        """Queue a notice. It is delivered with the pair's next message, or when the member is woken."""
        if not 0 < ttl_days <= MAX_TTL_DAYS:
            raise InvalidInput(f"a time to live must be more than 0 and at most {MAX_TTL_DAYS:g} days")
        pair = self.roster.pair(sender, receiver, thread)
        await self.conversations.check_threads(pair)
        return await self._queue.notices(pair).add(check_text(text), ttl_days=ttl_days)

    async def report(self, sender: str, receiver: str, *, thread: str = "") -> list[MessageStatus]:
        """The status of one pair's messages, oldest first: the queued ones, and all that this process accepted."""
        return await self._queue.report(self.roster.pair(sender, receiver, thread))

    async def notices(self, sender: str, receiver: str, *, thread: str = "") -> list[Notice]:
        """Every notice of one pair and whether it was delivered."""
        return await self._queue.notices(self.roster.pair(sender, receiver, thread)).all()

    # -- operations for operators

    async def wake(self, sender: str, receiver: str, *, thread: str = "") -> TeamReply | None:
        """Wake the member of a pair. If notices are pending, deliver them and return the member's answer."""
        pair = self.roster.pair(sender, receiver, thread)
        if await self._queue.notices(pair).pending():
            note = "(no question: read the notices above)"
            return await self.ask(sender, receiver, note, thread=thread)
        await self._dispatcher.wake(pair)
        return None

    async def sleep(self, sender: str, receiver: str, *, thread: str = "", is_forced: bool = False) -> bool:
        """Put a pair's member to sleep. A busy member sleeps only if forced, which cancels its message."""
        pair = self.roster.pair(sender, receiver, thread)
        if is_forced:
            await self.cancel(sender, receiver, thread=thread)
        return await self.pool.sleep(self.session_id(pair))

    async def cancel(self, sender: str, receiver: str, *, thread: str = "") -> bool:
        """Cancel the message that a pair's member is answering; False if it is not answering any."""
        in_flight = self.message_in_progress(self.session_id(self.roster.pair(sender, receiver, thread)))
        if in_flight is None or in_flight.task is None:
            return False
        in_flight.is_cancelled_by_operator = True
        in_flight.task.cancel()
        await asyncio.wait({in_flight.task})
        return True

    async def fork(self, sender: str, receiver: str, into: str, *, thread: str = "") -> Pair:
        """Copy a conversation into another thread. Later messages go to only one of the two."""
        pair = self.roster.pair(sender, receiver, thread)
        async with self._dispatcher.session_lock(self.session_id(pair)):
            await self.pool.sleep(self.session_id(pair))
            branch = await self.conversations.copy(pair, check_name(into, "thread name"))
            await self._factory.copy_agent_home(self.session_id(pair), self.session_id(branch))
        return branch

    async def sessions(self, *, limit: int | None = None) -> Sequence[SessionSummary]:
        """One summary for each pair that has exchanged messages, most recent first."""
        return await self.conversations.summaries(limit=limit)

    async def history(self, pair: Pair) -> PairHistory:
        """Every message and answer of a pair."""
        return await self.conversations.history(pair)

    async def stats(self) -> TeamsStats:
        """Messages, tokens and times of all pairs, computed from the journals. Damaged journals are listed by pair."""
        histories, damaged = [], []
        for summary in await self.sessions():
            pair = Pair.parse(summary.description)
            if pair is None:
                continue
            try:
                histories.append((pair, await self.conversations.history(pair)))
            except JournalDamaged:
                damaged.append(str(pair))
        return teams_stats(histories, damaged=damaged)

    def session_id(self, pair: Pair) -> SessionId:
        """The id of a pair's session."""
        return self.conversations.session_id(pair)

    def message_in_progress(self, session: SessionId) -> InFlight | None:
        """The message that a session is answering."""
        return self._in_flight_table.current(session)

    def _compose(
        self,
        sender: str,
        receiver: str,
        text: str,
        thread: str,
        message_id: str | None,
        asking_session: SessionId | None,
    ) -> tuple[TeamMessage, Pair]:
        pair = self.roster.pair(sender, receiver, thread)
        current = self._in_flight_table.current(asking_session) if asking_session is not None else None
        if asking_session is not None and current is None:
            # Without a turn there is no message whose hops could be counted.
            raise AskRefused("a member asks other teams only while it answers a message")
        if (waiting := self._in_flight_table.waiting(pair)) >= MAX_WAITING_MESSAGES:
            raise AskRefused(
                f"{waiting} messages from {sender!r} to {receiver!r} have no answer yet",
                hint="wait for answers before you send more",
            )
        message = TeamMessage(
            id=parse_message_id(message_id),
            text=check_text(text),
            sender=sender,
            principal=pair.principal,
            hops=current.message.hops + 1 if current is not None else 0,
        )
        return message, pair

    async def _run_in_task(
        self, in_flight: InFlight, seconds: float | None, asking_session: SessionId | None
    ) -> TeamReply:
        """Deliver a message in its own task, so that its caller still gets a reply when an operator cancels it."""
        notices = self._queue.notices(in_flight.pair)
        in_flight.task = inner = self._tasks.start(
            self._dispatcher.deliver(in_flight, notices, seconds=seconds, asking_session=asking_session)
        )
        try:
            return await asyncio.shield(inner)
        except asyncio.CancelledError:
            if inner.cancelled() and in_flight.reply is not None:
                return in_flight.reply
            inner.cancel()
            await asyncio.wait({inner})
            raise
