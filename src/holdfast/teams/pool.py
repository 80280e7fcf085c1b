"""The pool: which members are awake, never more than so many at once.

It is keyed by session, so nothing of one pair reaches another. A member that is busy is never put to sleep; of the idle
ones the least recently used goes first. Whoever finds everybody busy waits in line, and not for ever.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Literal

from holdfast.core import Clock, SessionId, pluralize
from holdfast.teams.contract import Member
from holdfast.teams.errors import PoolFull

Wake = Callable[[], Awaitable[Member]]
SlotState = Literal["waking", "busy", "idle", "closing"]


class Slot:
    """One place in the pool."""

    def __init__(self, now: float) -> None:
        self.member: Member | None = None
        self.state: SlotState = "waking"
        self.used_at = now
        self.left = asyncio.Event()


class Pool:
    """Members that are awake, by session. Whoever uses one sees to it that nobody else uses the same session."""

    def __init__(self, *, limit: int, idle_seconds: float, queue_seconds: float, clock: Clock) -> None:
        self._limit = limit
        self._idle_seconds = idle_seconds
        self._queue_seconds = queue_seconds
        self._clock = clock
        self._slots: dict[SessionId, Slot] = {}
        self._line: deque[asyncio.Future[None]] = deque()
        self._called = 0
        """How many were called up from the line and have not yet taken their place."""
        self._ending: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def states(self) -> dict[SessionId, SlotState]:
        """Who is awake, and what it does."""
        return {key: slot.state for key, slot in self._slots.items()}

    def busy(self) -> set[SessionId]:
        """Sessions at work, or on their way to be."""
        return {key for key, slot in self._slots.items() if slot.state in ("busy", "waking")}

    def has_room(self, key: SessionId) -> bool:
        """Whether a member for this session could be had without waiting for another to finish."""
        if key in self._slots:
            return self._slots[key].state in ("idle", "closing")
        room = self._limit - sum(slot.state in ("busy", "waking") for slot in self._slots.values())
        return room > len(self._line) + self._called

    @contextlib.asynccontextmanager
    async def using(self, key: SessionId, wake: Wake) -> AsyncIterator[Member]:
        """A member for this session, for as long as the block runs. Raises PoolFull, and what waking raises."""
        slot = await self._take(key)
        try:
            yield await self._awake(slot, wake)
        finally:
            self._give_back(key, slot)

    async def sleep(self, key: SessionId) -> bool:
        """Put one idle member to sleep; False where it is not awake or busy."""
        slot = self._slots.get(key)
        if slot is None or slot.state != "idle":
            return False
        await self._end(key, slot)
        return True

    async def sweep(self) -> list[SessionId]:
        """Put to sleep who was idle too long, and clear away who died; returns their sessions."""
        now = self._clock.monotonic()
        gone = [
            (key, slot)
            for key, slot in self._slots.items()
            if slot.state == "idle" and (now - slot.used_at >= self._idle_seconds or not _is_alive(slot))
        ]
        await asyncio.gather(*(self._end(key, slot) for key, slot in gone))
        return [key for key, _ in gone]

    async def close(self) -> None:
        """Turn away who waits, and put everybody to sleep; who is busy is cancelled by whoever asked."""
        self._is_closed = True
        while self._line:
            waiter = self._line.popleft()
            if not waiter.done():
                waiter.set_exception(PoolFull("the pool is closing"))
        while self._slots:
            key, slot = next(iter(self._slots.items()))
            if slot.state in ("closing", "waking"):
                await slot.left.wait()
            else:
                await self._end(key, slot)

    # -- inside

    async def _take(self, key: SessionId) -> Slot:
        """The session's own slot, or a place for it. INVARIANT: never more slots than the limit."""
        may_go = not self._line and not self._called
        while True:
            if self._is_closed:
                raise PoolFull("the pool is closed")
            slot = self._slots.get(key)
            if slot is not None and slot.state == "idle":
                slot.state = "busy"
                return slot
            if slot is not None:
                await slot.left.wait()
                continue
            if may_go and len(self._slots) < self._limit:
                slot = self._slots[key] = Slot(self._clock.monotonic())
                return slot
            victim = self._least_recently_used() if may_go else None
            if victim is not None:
                await self._end(*victim, is_calling=False)
            else:
                await self._stand_in_line(is_front=may_go)
                may_go = True

    async def _stand_in_line(self, *, is_front: bool) -> None:
        """Wait until a member is done; who was called up and found its place taken goes back to the front."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if is_front:
            self._line.appendleft(waiter)
        else:
            self._line.append(waiter)
        try:
            async with asyncio.timeout(self._queue_seconds):
                await waiter
            self._called -= 1
        except TimeoutError:
            self._pass_on(waiter)
            raise PoolFull(
                f"all {pluralize(self._limit, 'member')} are busy, and none was free within {pluralize(self._queue_seconds, 'second')}",
                hint="ask again later, or raise max_processes in the roster",
            ) from None
        except asyncio.CancelledError:
            self._pass_on(waiter)
            raise

    def _pass_on(self, waiter: asyncio.Future[None]) -> None:
        """Leave the line; who was called up in the same moment calls the next."""
        if waiter in self._line:
            self._line.remove(waiter)
        elif waiter.done() and not waiter.cancelled() and waiter.exception() is None:
            self._called -= 1
            self._call_next()

    async def _awake(self, slot: Slot, wake: Wake) -> Member:
        if slot.member is not None and not slot.member.is_alive:
            dead, slot.member = slot.member, None
            await dead.close()
        if slot.member is None:
            slot.state = "waking"
            slot.member = await wake()
        slot.state = "busy"
        return slot.member

    def _give_back(self, key: SessionId, slot: Slot) -> None:
        slot.used_at = self._clock.monotonic()
        if slot.member is None:
            self._slots.pop(key, None)
        else:
            slot.state = "idle"
        slot.left.set()
        slot.left = asyncio.Event()
        self._call_next()

    def _call_next(self) -> None:
        while self._line:
            waiter = self._line.popleft()
            if not waiter.done():
                waiter.set_result(None)
                self._called += 1
                return

    def _least_recently_used(self) -> tuple[SessionId, Slot] | None:
        idle = [(key, slot) for key, slot in self._slots.items() if slot.state == "idle"]
        return min(idle, key=lambda each: each[1].used_at) if idle else None

    async def _end(self, key: SessionId, slot: Slot, *, is_calling: bool = True) -> None:
        """Put a member to sleep. Its place is free only when it is gone, also where whoever waited for that gave up."""
        slot.state = "closing"
        ending = asyncio.create_task(self._close_slot(key, slot))
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            ending.add_done_callback(lambda _: self._call_next())
            raise
        if is_calling:
            self._call_next()

    async def _close_slot(self, key: SessionId, slot: Slot) -> None:
        try:
            if slot.member is not None:
                await slot.member.close()
        finally:
            self._slots.pop(key, None)
            slot.left.set()


def _is_alive(slot: Slot) -> bool:
    return slot.member is not None and slot.member.is_alive
