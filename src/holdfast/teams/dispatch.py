"""Dispatch: delivers one message to a member and returns the reply.

A session handles one message at a time, in order of arrival. Every wait is bounded: it ends with an answer, at a time
limit, or immediately if it could never end (`WaitGraph`). Failures are replies with an error outcome.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import msgspec

from holdfast.core import Error, SessionId, is_success, pluralize
from holdfast.core.errors import HoldfastError
from holdfast.gate import InMemoryTreeBudget
from holdfast.teams.config.roster import TeamsSettings
from holdfast.teams.contract import Member, TeamReply
from holdfast.teams.conversations import Conversations
from holdfast.teams.deadlock import WaitGraph
from holdfast.teams.errors import MemberFailed, with_recovery_hint
from holdfast.teams.in_flight import InFlight, InFlightTable
from holdfast.teams.members.factory import MemberFactory
from holdfast.teams.pair_log import Notices
from holdfast.teams.pairs import Pair
from holdfast.teams.pool import Pool


class Dispatcher:
    """Delivers messages to members."""

    def __init__(
        self,
        *,
        settings: TeamsSettings,
        conversations: Conversations,
        factory: MemberFactory,
        pool: Pool,
        in_flight_table: InFlightTable,
        tree: InMemoryTreeBudget,
    ) -> None:
        self._settings = settings
        self._conversations = conversations
        self._factory = factory
        self._pool = pool
        self._in_flight_table = in_flight_table
        self._tree = tree
        self._waits = WaitGraph()
        self._locks: WeakValueDictionary[SessionId, asyncio.Lock] = WeakValueDictionary()

    async def deliver(
        self,
        in_flight: InFlight,
        notices: Notices,
        *,
        seconds: float | None = None,
        asking_session: SessionId | None = None,
    ) -> TeamReply:
        """Deliver a message. The reply is also stored on `in_flight`. `asking_session` is the session that waits for it."""
        try:
            reply = await self._deliver_in_time(in_flight, notices, self._limit(seconds), asking_session)
        except HoldfastError as error:
            reply = failed_reply(error)
        except OSError as error:
            reply = failed_reply(MemberFailed(f"the system refused what the member needed: {error}"))
        except asyncio.CancelledError:
            in_flight.finish(failed_reply(HoldfastError("the message was cancelled"), code="cancelled"))
            raise
        except Exception:
            # A defect of ours propagates to the caller; the message must not stay in flight.
            in_flight.finish(
                failed_reply(HoldfastError("the message could not be delivered"), code="internal")
            )
            raise
        in_flight.finish(reply)
        return reply

    async def wake(self, pair: Pair) -> None:
        """Wake the member of a pair. Raises what `MemberFactory.wake` raises."""
        key = self._conversations.session_id(pair)
        async with self.session_lock(key), self._pool.using(key, lambda: self._wake(pair)):
            pass

    def session_lock(self, key: SessionId) -> asyncio.Lock:
        """The lock to hold while using a session."""
        return self._locks.setdefault(key, asyncio.Lock())

    async def _deliver_in_time(
        self, in_flight: InFlight, notices: Notices, limit: float, asking_session: SessionId | None
    ) -> TeamReply:
        key = self._conversations.session_id(in_flight.pair)
        asker = (
            asking_session
            if asking_session is not None and self._in_flight_table.current(asking_session) is not None
            else None
        )

        def is_starved(waiting: set[SessionId]) -> bool:
            busy = self._pool.busy()
            return bool(busy) and not self._pool.has_room(key) and busy <= waiting

        with self._waits.waiting_for(asker, key, is_starved=is_starved):
            try:
                async with asyncio.timeout(limit) as time:
                    return await self._with_member(in_flight, notices, key)
            except TimeoutError:
                if not time.expired():
                    raise  # a timeout of a disk or a connection, not ours
                return TeamReply(
                    outcome=Error(
                        message=f"no answer within {pluralize(limit, 'second')}; the turn was interrupted",
                        code="timeout",
                        hint="ask again with more time, or send without waiting",
                    )
                )

    async def _with_member(self, in_flight: InFlight, notices: Notices, key: SessionId) -> TeamReply:
        async with self.session_lock(key):
            try:
                async with self._pool.using(key, lambda: self._wake(in_flight.pair)) as member:
                    self._in_flight_table.set_current(key, in_flight)
                    return await self._ask_member(in_flight, notices, member)
            finally:
                self._in_flight_table.clear_current(key)

    async def _ask_member(self, in_flight: InFlight, notices: Notices, member: Member) -> TeamReply:
        await member.compact(above_tokens=self._settings.compact_tokens)
        pending = await notices.pending()
        message = msgspec.structs.replace(in_flight.message, notices=tuple(notice.text for notice in pending))
        reply = await member.ask(message)
        if pending and is_success(reply.outcome):
            await notices.mark_delivered(pending, message_id=message.id)
        return reply

    async def _wake(self, pair: Pair) -> Member:
        with with_recovery_hint(self._conversations.session_id(pair)):
            return await self._factory.wake(pair, await self._conversations.ensure(pair), tree=self._tree)

    def _limit(self, seconds: float | None) -> float:
        longest = self._settings.turn_seconds
        return min(seconds, longest) if seconds is not None else longest


def failed_reply(error: HoldfastError, *, code: str = "") -> TeamReply:
    """A reply that reports an error."""
    return TeamReply(outcome=Error(message=str(error), code=code or error.code, hint=error.hint))


_Result = TypeVar("_Result")


class BackgroundTasks:
    """Owns tasks that nothing awaits, and cancels them when their owner closes."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def start(self, work: Coroutine[Any, Any, _Result]) -> "asyncio.Task[_Result]":
        """Start a task."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def cancel_all(self) -> None:
        """Cancel every task and wait until it has stopped."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
