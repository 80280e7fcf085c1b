"""The pool of awake members, bounded by `max_processes`.

Members are keyed by session, so nothing of one pair reaches another. The pool never evicts a busy member; among the
idle ones it evicts the least recently used. If all members are busy, callers queue, with a time limit.
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
    """One awake member and its state."""

    def __init__(self, now: float) -> None:
        self.member: Member | None = None
        self.state: SlotState = "waking"
        self.used_at = now
        self.released = asyncio.Event()


class Pool:
    """Awake members by session. Callers ensure that no two of them use the same session at once."""

    def __init__(self, *, limit: int, idle_seconds: float, queue_seconds: float, clock: Clock) -> None:
        self._limit = limit
        self._idle_seconds = idle_seconds
        self._queue_seconds = queue_seconds
        self._clock = clock
        self._slots: dict[SessionId, Slot] = {}
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._admitted = 0
        """How many waiters were admitted and have not taken their slot yet."""
        self._closing: set[asyncio.Task[None]] = set()
        self._is_closed = False

    def states(self) -> dict[SessionId, SlotState]:
        """The state of every awake member."""
        return {key: slot.state for key, slot in self._slots.items()}

    def busy(self) -> set[SessionId]:
        """Sessions whose member is busy or waking."""
        return {key for key, slot in self._slots.items() if slot.state in ("busy", "waking")}

    def has_room(self, key: SessionId) -> bool:
        """Whether this session could get a member without waiting for another to finish."""
        if key in self._slots:
            return self._slots[key].state in ("idle", "closing")
        room = self._limit - sum(slot.state in ("busy", "waking") for slot in self._slots.values())
        return room > len(self._waiters) + self._admitted

    @contextlib.asynccontextmanager
    async def using(self, key: SessionId, wake: Wake) -> AsyncIterator[Member]:
        """Use a session's member while the block runs. Raises PoolFull, and what `wake` raises."""
        slot = await self._acquire(key)
        try:
            yield await self._ensure_awake(slot, wake)
        finally:
            self._release(key, slot)

    async def sleep(self, key: SessionId) -> bool:
        """Put an idle member to sleep; False if it is busy or not awake."""
        slot = self._slots.get(key)
        if slot is None or slot.state != "idle":
            return False
        await self._evict(key, slot)
        return True

    async def evict_idle(self) -> list[SessionId]:
        """Put members to sleep that were idle too long or died; return their sessions."""
        now = self._clock.monotonic()
        evicted = [
            (key, slot)
            for key, slot in self._slots.items()
            if slot.state == "idle" and (now - slot.used_at >= self._idle_seconds or not _is_alive(slot))
        ]
        await asyncio.gather(*(self._evict(key, slot) for key, slot in evicted))
        return [key for key, _ in evicted]

    async def close(self) -> None:
        """Reject all waiters and put every member to sleep. Callers cancel the busy ones."""
        self._is_closed = True
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_exception(PoolFull("the pool is closing"))
        while self._slots:
            key, slot = next(iter(self._slots.items()))
            if slot.state in ("closing", "waking"):
                await slot.released.wait()
            else:
                await self._evict(key, slot)

    async def _acquire(self, key: SessionId) -> Slot:
        """Return the session's slot, or a new one. INVARIANT: there are never more slots than the limit."""
        is_admitted = not self._waiters and not self._admitted
        while True:
            if self._is_closed:
                raise PoolFull("the pool is closed")
            slot = self._slots.get(key)
            if slot is not None and slot.state == "idle":
                slot.state = "busy"
                return slot
            if slot is not None:
                await slot.released.wait()
                continue
            if is_admitted and len(self._slots) < self._limit:
                slot = self._slots[key] = Slot(self._clock.monotonic())
                return slot
            victim = self._least_recently_used() if is_admitted else None
            if victim is not None:
                await self._evict(*victim, admits_next=False)
            else:
                await self._wait_for_room(is_at_front=is_admitted)
                is_admitted = True

    async def _wait_for_room(self, *, is_at_front: bool) -> None:
        """Wait until a member is done. A waiter that was admitted but lost its slot returns to the front."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if is_at_front:
            self._waiters.appendleft(waiter)
        else:
            self._waiters.append(waiter)
        try:
            async with asyncio.timeout(self._queue_seconds):
                await waiter
            self._admitted -= 1
        except TimeoutError:
            self._leave_queue(waiter)
            raise PoolFull(
                f"all {pluralize(self._limit, 'member')} are busy, and none was free within {pluralize(self._queue_seconds, 'second')}",
                hint="ask again later, or raise max_processes in the roster",
            ) from None
        except asyncio.CancelledError:
            self._leave_queue(waiter)
            raise

    def _leave_queue(self, waiter: asyncio.Future[None]) -> None:
        """Leave the queue. A waiter that was admitted at the same moment admits the next one."""
        if waiter in self._waiters:
            self._waiters.remove(waiter)
        elif waiter.done() and not waiter.cancelled() and waiter.exception() is None:
            self._admitted -= 1
            self._admit_next()

    async def _ensure_awake(self, slot: Slot, wake: Wake) -> Member:
        if slot.member is not None and not slot.member.is_alive:
            dead, slot.member = slot.member, None
            await dead.close()
        if slot.member is None:
            slot.state = "waking"
            slot.member = await wake()
        slot.state = "busy"
        return slot.member

    def _release(self, key: SessionId, slot: Slot) -> None:
        slot.used_at = self._clock.monotonic()
        if slot.member is None:
            self._slots.pop(key, None)
        else:
            slot.state = "idle"
        slot.released.set()
        slot.released = asyncio.Event()
        self._admit_next()

    def _admit_next(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                self._admitted += 1
                return

    def _least_recently_used(self) -> tuple[SessionId, Slot] | None:
        idle = [(key, slot) for key, slot in self._slots.items() if slot.state == "idle"]
        return min(idle, key=lambda each: each[1].used_at) if idle else None

    async def _evict(self, key: SessionId, slot: Slot, *, admits_next: bool = True) -> None:
        """Put a member to sleep. Its slot is free only once the member is closed, even if the caller is cancelled."""
        slot.state = "closing"
        closing = asyncio.create_task(self._close_slot(key, slot))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            closing.add_done_callback(lambda _: self._admit_next())
            raise
        if admits_next:
            self._admit_next()

    async def _close_slot(self, key: SessionId, slot: Slot) -> None:
        try:
            if slot.member is not None:
                await slot.member.close()
        finally:
            self._slots.pop(key, None)
            slot.released.set()


def _is_alive(slot: Slot) -> bool:
    return slot.member is not None and slot.member.is_alive
