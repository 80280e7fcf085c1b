"""The switchboard: takes a letter from one team, has the right member answer it in the right session, brings the answer back.

What a caller gets is a value, also when it went wrong; misuse raises.
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
from holdfast.teams.maintenance import Discovery, Finding, Housekeeping
from holdfast.teams.members.factory import MemberFactory
from holdfast.teams.message_text import check_text, message_id
from holdfast.teams.pair_log import Notice
from holdfast.teams.pairs import Pair, check_name
from holdfast.teams.pool import Pool
from holdfast.teams.queue import MessageQueue
from holdfast.teams.stats import TeamsStats, company_figures
from holdfast.teams.toolset import TeamsToolset

MAX_TTL_DAYS = 365.0


class Broker:
    """Connects the teams of one roster. Open while its block runs."""

    def __init__(
        self, *, roster: Roster, folder: Path, store: Store, staff: MemberFactory, clock: Clock
    ) -> None:
        self.roster = roster
        self._staff = staff
        settings = roster.settings
        self.pool = Pool(
            limit=settings.max_processes,
            idle_seconds=settings.idle_seconds,
            queue_seconds=settings.queue_seconds,
            clock=clock,
        )
        self.conversations = Conversations(roster=roster, folder=str(folder), store=store, staff=staff)
        self._flights, self._errands = InFlightTable(), BackgroundTasks()
        self._tree = InMemoryTreeBudget(settings.budget)
        self._delivery = Dispatcher(
            settings=settings,
            conversations=self.conversations,
            staff=staff,
            pool=self.pool,
            flights=self._flights,
            tree=self._tree,
        )
        self._post_office = MessageQueue(
            store=store,
            folder=str(folder),
            clock=clock,
            conversations=self.conversations,
            delivery=self._delivery,
            flights=self._flights,
            errands=self._errands,
        )
        self._discovery = Discovery(
            roster=roster, folder=folder, store=store, conversations=self.conversations
        )
        self.housekeeping = Housekeeping(
            roster=roster,
            conversations=self.conversations,
            delivery=self._delivery,
            pool=self.pool,
            clock=clock,
        )
        staff.equip = lambda pair, session: (TeamsToolset(self, team=pair.receiver, within=session),)

    async def __aenter__(self) -> Self:
        if self.roster.settings.budget != Limits():
            for line in await self.sessions():
                self._tree.charge(await self.conversations.spent(line))
        self._errands.start(self.housekeeping.go_on())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._errands.end()
        await self.pool.close()

    async def take_up(self) -> int:
        """Begin to serve: deliver what an earlier process left without a receipt, wake who is asked most; returns how many."""
        self._errands.start(self.housekeeping.wake_the_busiest())
        return await self._post_office.take_up(set(self.roster.teams))

    async def discover(self) -> list[Finding]:
        """Hold what the members' programs have kept against our record; what was lost from it is entered again."""
        return await self._discovery.look()

    # -- letters

    async def ask(
        self,
        sender: str,
        receiver: str,
        text: str,
        *,
        thread: str = "",
        seconds: float | None = None,
        message: str | None = None,
        within: SessionId | None = None,
    ) -> TeamReply:
        """Ask a team and wait for its answer; `within` is the session in whose turn the question came up.

        Raises UnknownTeam, AskRefused and InvalidInput. Everything else, a time that is up included, is an outcome.
        """
        if seconds is not None and not seconds > 0:
            raise InvalidInput(
                f"the time to wait is more than 0 seconds, not {seconds:g}",
                hint="leave it out to wait for a whole turn",
            )
        letter, pair = self._written(sender, receiver, text, thread, message, within)
        refusal = self._flights.refuse(letter, self.roster.settings.max_hops)
        if refusal is not None:
            return refusal
        flight = self._flights.begin(letter, pair)
        return await self._fly(flight, seconds, within)

    async def send(
        self,
        sender: str,
        receiver: str,
        text: str,
        *,
        thread: str = "",
        message: str | None = None,
        within: SessionId | None = None,
    ) -> MessageStatus:
        """Send a team a message and do not wait: it is delivered also after a restart, and its receipt is in the report."""
        letter, pair = self._written(sender, receiver, text, thread, message, within)
        refusal = self._flights.refuse(letter, self.roster.settings.max_hops)
        if refusal is not None:
            return MessageStatus(
                message=letter.id, pair=str(pair), state="failed", hops=letter.hops, reply=refusal
            )
        return await self._post_office.send(letter, pair)

    async def notify(
        self, sender: str, receiver: str, text: str, *, thread: str = "", ttl_days: float = 30.0
    ) -> Notice:
        """Leave word; it goes with the pair's next letter, or is handed over when the member is woken."""
        if not 0 < ttl_days <= MAX_TTL_DAYS:
            raise InvalidInput(f"a time to live is above 0 and at most {MAX_TTL_DAYS:g} days")
        pair = self.roster.pair(sender, receiver, thread)
        return await self._post_office.mailbox(pair).leave(check_text(text), ttl_days=ttl_days)

    async def report(self, sender: str, receiver: str, *, thread: str = "") -> list[MessageStatus]:
        """What became of the letters of one pair: those nobody waits for, and those this process knows; oldest first."""
        return await self._post_office.report(self.roster.pair(sender, receiver, thread))

    async def notices(self, sender: str, receiver: str, *, thread: str = "") -> list[Notice]:
        """What was left for one pair, and what became of it."""
        return await self._post_office.mailbox(self.roster.pair(sender, receiver, thread)).notices()

    # -- what an operator does

    async def wake(self, sender: str, receiver: str, *, thread: str = "") -> TeamReply | None:
        """Have the member of a pair ready; word that waits is handed over, and its answer is the result."""
        pair = self.roster.pair(sender, receiver, thread)
        if await self._post_office.mailbox(pair).waiting():
            note = "(no question: take note of what was left)"
            return await self.ask(sender, receiver, note, thread=thread)
        await self._delivery.wake(pair)
        return None

    async def sleep(self, sender: str, receiver: str, *, thread: str = "", is_forced: bool = False) -> bool:
        """Put the member of one pair to sleep; a busy one only where forced, and then its letter is cancelled."""
        pair = self.roster.pair(sender, receiver, thread)
        if is_forced:
            await self.cancel(sender, receiver, thread=thread)
        return await self.pool.sleep(self.key(pair))

    async def cancel(self, sender: str, receiver: str, *, thread: str = "") -> bool:
        """Interrupt the letter that one pair's member answers now; False where it answers none."""
        flight = self.working(self.key(self.roster.pair(sender, receiver, thread)))
        if flight is None or flight.task is None:
            return False
        flight.is_called_off = True
        flight.task.cancel()
        await asyncio.wait({flight.task})
        return True

    async def fork(self, sender: str, receiver: str, into: str, *, thread: str = "") -> Pair:
        """The same conversation once more as another thread; what is said there from now on is not said here."""
        pair = self.roster.pair(sender, receiver, thread)
        async with self._delivery.alone(self.key(pair)):
            await self.pool.sleep(self.key(pair))
            branch = await self.conversations.copy(pair, check_name(into, "name of a thread"))
            await self._staff.copy_quarters(self.key(pair), self.key(branch))
        return branch

    async def sessions(self, *, limit: int | None = None) -> Sequence[SessionSummary]:
        """One line for each pair that ever talked, the latest first."""
        return await self.conversations.lines(limit=limit)

    async def said(self, pair: Pair) -> PairHistory:
        """Everything that was said in a pair."""
        return await self.conversations.history(pair)

    async def figures(self) -> TeamsStats:
        """Messages, tokens and times of all pairs, counted from the journals; those that are damaged are named."""
        histories, damaged = [], []
        for line in await self.sessions():
            pair = Pair.read(line.description)
            if pair is None:
                continue
            try:
                histories.append((pair, await self.conversations.history(pair)))
            except JournalDamaged:
                damaged.append(str(pair))
        return company_figures(histories, damaged=damaged)

    def key(self, pair: Pair) -> SessionId:
        """The id of a pair's session."""
        return self.conversations.key(pair)

    def working(self, session: SessionId) -> InFlight | None:
        """The letter that a session answers now."""
        return self._flights.working(session)

    # -- inside

    def _written(
        self,
        sender: str,
        receiver: str,
        text: str,
        thread: str,
        message: str | None,
        within: SessionId | None,
    ) -> tuple[TeamMessage, Pair]:
        pair = self.roster.pair(sender, receiver, thread)
        around = self._flights.working(within) if within is not None else None
        if within is not None and around is None:
            # Outside of a turn nothing would count how often a question was handed on.
            raise AskRefused("a member asks other teams only while it answers a message")
        letter = TeamMessage(
            id=message_id(message),
            text=check_text(text),
            sender=sender,
            principal=pair.principal,
            hops=around.letter.hops + 1 if around is not None else 0,
        )
        return letter, pair

    async def _fly(self, flight: InFlight, seconds: float | None, within: SessionId | None) -> TeamReply:
        """Run one letter in a task of its own, so that an operator can cancel it and its caller still hears of it."""
        mailbox = self._post_office.mailbox(flight.pair)
        flight.task = inner = self._errands.start(
            self._delivery.bring(flight, mailbox, seconds=seconds, within=within)
        )
        try:
            return await asyncio.shield(inner)
        except asyncio.CancelledError:
            if inner.cancelled() and flight.reply is not None:
                return flight.reply
            inner.cancel()
            await asyncio.wait({inner})
            raise
