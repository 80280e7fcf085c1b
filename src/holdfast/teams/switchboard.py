"""The switchboard: takes a letter from one team, has the right member answer it in the right session, brings the answer back.

One letter at a time in a session, first come, first served. Every wait ends: in an answer, in a time limit, or at once
where it could never end. What a caller gets is a value, also when it went wrong; misuse raises.
"""

import asyncio
from collections.abc import Coroutine, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import UUID, uuid4
from weakref import WeakValueDictionary

import msgspec

from holdfast.core import Amount, Clock, Error, SessionId, is_success
from holdfast.core.errors import BudgetExceeded, HoldfastError, InvalidInput, SessionExists
from holdfast.core.events import SessionOpened
from holdfast.gate import TreeBudget
from holdfast.store import SessionSummary, Store
from holdfast.teams.contract import Letter, Reply
from holdfast.teams.errors import TooManyHops
from holdfast.teams.flights import Flight, FlightReport, Flights, report
from holdfast.teams.mailbox import Mailbox, Notice
from holdfast.teams.pairs import Pair
from holdfast.teams.pool import Pool
from holdfast.teams.roster import Roster
from holdfast.teams.staff import Staff
from holdfast.teams.waits import Waits

MAX_TEXT = 1_000_000
MAX_TTL_DAYS = 365.0
_Result = TypeVar("_Result")


class Switchboard:
    """Connects the teams of one roster. Open while its block runs."""

    def __init__(self, *, roster: Roster, folder: Path, store: Store, staff: Staff, clock: Clock) -> None:
        self.roster = roster
        self._folder = str(folder)
        self._store = store
        self._staff = staff
        self._clock = clock
        settings = roster.settings
        self.pool = Pool(
            limit=settings.max_processes,
            idle_seconds=settings.idle_seconds,
            queue_seconds=settings.queue_seconds,
            clock=clock,
        )
        self._waits = Waits()
        self._flights = Flights()
        self._locks: WeakValueDictionary[SessionId, asyncio.Lock] = WeakValueDictionary()
        self._tree = TreeBudget(settings.budget)
        self._tasks: set[asyncio.Task[Any]] = set()

    async def __aenter__(self) -> Self:
        spent = Amount()
        for line in await self.sessions():
            spent = spent.plus(Amount(tokens=line.tokens, cost_usd=line.cost_usd, iterations=line.turns))
        self._tree.charge(spent)
        self._start(self._keep_house())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.pool.close()

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
    ) -> Reply:
        """Ask a team and wait for its answer; `within` is the session in whose turn the question came up.

        Raises UnknownTeam, AskRefused and InvalidInput. Everything else, a time that is up included, is an outcome.
        """
        flight = self._take_in(sender, receiver, text, thread, message, within)
        if isinstance(flight, Reply):
            return flight
        return await self._fly(flight, seconds, within)

    def send(
        self,
        sender: str,
        receiver: str,
        text: str,
        *,
        thread: str = "",
        seconds: float | None = None,
        message: str | None = None,
        within: SessionId | None = None,
    ) -> FlightReport:
        """Ask a team and do not wait; the answer is in the pair's report."""
        flight = self._take_in(sender, receiver, text, thread, message, within)
        if isinstance(flight, Reply):
            return FlightReport(message=message or "", pair="", state="failed", hops=0, reply=flight)
        flight.task = self._start(self._settle(flight, self._limit(seconds), None))
        return report(flight)

    async def notify(
        self, sender: str, receiver: str, text: str, *, thread: str = "", ttl_days: float = 30.0
    ) -> Notice:
        """Leave word; it goes with the pair's next letter, or is handed over when the member is woken."""
        if not 0 < ttl_days <= MAX_TTL_DAYS:
            raise InvalidInput(f"a time to live is above 0 and at most {MAX_TTL_DAYS:g} days")
        return await self._mailbox(self.roster.pair(sender, receiver, thread)).leave(
            _checked(text), ttl_days=ttl_days
        )

    # -- what an operator does

    async def wake(self, sender: str, receiver: str, *, thread: str = "") -> Reply | None:
        """Have the member of a pair ready; word that waits is handed over, and its answer is the result."""
        pair = self.roster.pair(sender, receiver, thread)
        if await self._mailbox(pair).waiting():
            return await self.ask(
                sender, receiver, "(no question: take note of what was left)", thread=thread
            )
        key = await self._ensure(pair)
        async with self._lock(key), self.pool.using(key, lambda: self._staff.wake(pair, key)):
            return None

    async def sleep(self, sender: str, receiver: str, *, thread: str = "", is_forced: bool = False) -> bool:
        """Put the member of one pair to sleep; a busy one only where forced, and then its letter is cancelled."""
        pair = self.roster.pair(sender, receiver, thread)
        if is_forced:
            await self.cancel(sender, receiver, thread=thread)
        return await self.pool.sleep(pair.session(self._folder))

    async def cancel(self, sender: str, receiver: str, *, thread: str = "") -> bool:
        """Interrupt the letter that one pair's member answers now; False where it answers none."""
        key = self.roster.pair(sender, receiver, thread).session(self._folder)
        flight = self._flights.working(key)
        if flight is None or flight.task is None:
            return False
        flight.task.cancel()
        await asyncio.wait({flight.task})
        return True

    def report(self, sender: str, receiver: str, *, thread: str = "") -> list[FlightReport]:
        """The letters of one pair that this process knows, oldest first."""
        return self._flights.of(self.roster.pair(sender, receiver, thread))

    async def notices(self, sender: str, receiver: str, *, thread: str = "") -> list[Notice]:
        """What was left for one pair, and what became of it."""
        return await self._mailbox(self.roster.pair(sender, receiver, thread)).notices()

    async def sessions(self) -> Sequence[SessionSummary]:
        """One line for each pair that ever talked, the latest first."""
        return await self._store.sessions(folder=self._folder)

    def key(self, pair: Pair) -> SessionId:
        """The id of a pair's session."""
        return pair.session(self._folder)

    def working(self, session: SessionId) -> Flight | None:
        """The letter that a session answers now."""
        return self._flights.working(session)

    # -- inside

    def _take_in(
        self,
        sender: str,
        receiver: str,
        text: str,
        thread: str,
        message: str | None,
        within: SessionId | None,
    ) -> Flight | Reply:
        pair = self.roster.pair(sender, receiver, thread)
        around = self._flights.working(within) if within is not None else None
        hops = around.letter.hops + 1 if around is not None else 0
        letter = Letter(
            id=_message_id(message), text=_checked(text), sender=sender, principal=pair.principal, hops=hops
        )
        if hops > self.roster.settings.max_hops:
            return _failed(
                TooManyHops(
                    f"this question was handed on {hops} times",
                    hint="answer with what you know; max_hops in the roster is the limit",
                )
            )
        return self._flights.begin(letter, pair)

    async def _fly(self, flight: Flight, seconds: float | None, within: SessionId | None) -> Reply:
        """Run one letter in a task of its own, so that an operator can cancel it and its caller still hears of it."""
        flight.task = inner = self._start(self._settle(flight, self._limit(seconds), within))
        try:
            return await asyncio.shield(inner)
        except asyncio.CancelledError:
            if inner.cancelled() and flight.reply is not None:
                return flight.reply
            inner.cancel()
            await asyncio.wait({inner})
            raise

    def _limit(self, seconds: float | None) -> float:
        longest = self.roster.settings.turn_seconds
        return min(seconds, longest) if seconds is not None else longest

    async def _settle(self, flight: Flight, limit: float, within: SessionId | None) -> Reply:
        try:
            reply = await self._answer(flight, limit, within)
        except HoldfastError as error:
            reply = _failed(error)
        except asyncio.CancelledError:
            flight.end(_failed(HoldfastError("the message was cancelled"), code="cancelled"))
            raise
        flight.end(reply)
        return reply

    async def _answer(self, flight: Flight, limit: float, within: SessionId | None) -> Reply:
        key = flight.pair.session(self._folder)
        asker = within if within is not None and self._flights.working(within) is not None else None

        def is_starved(waiting: set[SessionId]) -> bool:
            busy = self.pool.busy()
            return bool(busy) and not self.pool.has_room(key) and busy <= waiting

        with self._waits.added(asker, key, is_starved=is_starved):
            try:
                async with asyncio.timeout(limit):
                    return await self._in_turn(flight, key)
            except TimeoutError:
                return Reply(
                    outcome=Error(
                        message=f"no answer within {limit:g} seconds; the turn was interrupted",
                        code="timeout",
                        hint="ask again with more time, or send without waiting",
                    )
                )

    async def _in_turn(self, flight: Flight, key: SessionId) -> Reply:
        pair = flight.pair
        async with self._lock(key):
            try:
                held = self._tree.reserve(Amount(iterations=1, tokens=1))
            except BudgetExceeded as error:
                return _failed(error)
            try:
                await self._ensure(pair)
                async with self.pool.using(key, lambda: self._staff.wake(pair, key)) as member:
                    self._flights.set_working(key, flight)
                    await member.compact(above_tokens=self.roster.settings.compact_tokens)
                    box = self._mailbox(pair)
                    waiting = await box.waiting()
                    letter = msgspec.structs.replace(
                        flight.letter, notices=tuple(notice.text for notice in waiting)
                    )
                    reply = await member.ask(letter)
                    if waiting and is_success(reply.outcome):
                        await box.deliver(waiting, message=letter.id)
            finally:
                self._flights.rest(key)
                self._tree.release(held)
            self._tree.charge(Amount.of(reply.usage).plus(Amount(iterations=1)))
            return reply

    async def _ensure(self, pair: Pair) -> SessionId:
        """Create the pair's session where it is not there; of two at once, the store lets one."""
        key = pair.session(self._folder)
        team = self.roster.team(pair.receiver)
        opened = SessionOpened(
            principal=pair.principal,
            folder=self._folder,
            workspace=team.project,
            policy=team.policy,
            policy_digest=self._staff.policy_digest(team),
            model=team.model,
            limits=team.budget,
            description=str(pair),
        )
        try:
            journal = await self._store.create(opened, session=key)
        except SessionExists:
            return key
        await journal.release()
        return key

    async def _keep_house(self) -> None:
        """Look after idle members for as long as the switchboard is open."""
        while True:
            await asyncio.sleep(min(self.roster.settings.health_seconds, self.roster.settings.idle_seconds))
            await self.pool.sweep()

    def _mailbox(self, pair: Pair) -> Mailbox:
        return Mailbox(pair, store=self._store, folder=self._folder, clock=self._clock)

    def _lock(self, key: SessionId) -> asyncio.Lock:
        return self._locks.setdefault(key, asyncio.Lock())

    def _start(self, work: Coroutine[Any, Any, _Result]) -> "asyncio.Task[_Result]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _message_id(message: str | None) -> str:
    if message is None:
        return str(uuid4())
    try:
        return str(UUID(message))
    except ValueError:
        raise InvalidInput(f"{message!r} is no id of a message", hint="give a UUID, or none") from None


def _checked(text: str) -> str:
    if not text.strip() or len(text) > MAX_TEXT:
        raise InvalidInput(f"a message has from 1 to {MAX_TEXT} characters")
    return text


def _failed(error: HoldfastError, *, code: str = "") -> Reply:
    return Reply(outcome=Error(message=str(error), code=code or error.code, hint=error.hint))
