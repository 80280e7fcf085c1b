"""The pool: bounded, never evicts a busy member, admits in order. Cases L1 to L4 and L8."""

import asyncio
import random

import pytest

from holdfast.core import FakeClock, SessionId
from holdfast.teams import Pool, PoolFull, TeamMessage, TeamReply

KEYS = [SessionId(f"s{n}") for n in range(9)]


class Sleeper:
    """A member that is only awake."""

    awake = 0
    most_awake = 0

    def __init__(self) -> None:
        self.is_alive = True
        self.is_closed = False
        Sleeper.awake += 1
        Sleeper.most_awake = max(Sleeper.most_awake, Sleeper.awake)

    async def ask(self, message: TeamMessage) -> TeamReply:
        raise AssertionError("the pool sends no messages")

    async def compact(self, *, above_tokens: int) -> bool:
        return False

    async def close(self) -> None:
        await asyncio.sleep(0)
        Sleeper.awake -= not self.is_closed
        self.is_closed, self.is_alive = True, False


async def wake() -> Sleeper:
    await asyncio.sleep(0)
    return Sleeper()


@pytest.fixture(autouse=True)
def _none_awake() -> None:
    Sleeper.awake = Sleeper.most_awake = 0


def pool(limit: int, clock: FakeClock | None = None, queue_seconds: float = 5.0) -> Pool:
    return Pool(limit=limit, idle_seconds=60, queue_seconds=queue_seconds, clock=clock or FakeClock())


async def use(a_pool: Pool, key: SessionId) -> Sleeper:
    async with a_pool.using(key, wake) as member:
        assert isinstance(member, Sleeper)
        return member


async def test_l1_the_least_recently_used_idle_member_is_evicted() -> None:
    clock = FakeClock()
    a_pool = pool(2, clock)
    for key in (KEYS[0], KEYS[1], KEYS[0], KEYS[2]):
        clock.advance(1)
        await use(a_pool, key)
    assert set(a_pool.states()) == {KEYS[0], KEYS[2]}
    await a_pool.close()
    assert Sleeper.awake == 0


async def test_an_idle_member_is_reused() -> None:
    a_pool = pool(2)
    assert await use(a_pool, KEYS[0]) is await use(a_pool, KEYS[0])
    await a_pool.close()


async def test_l2_a_pool_with_only_busy_members_refuses_and_evicts_none() -> None:
    a_pool = pool(1, queue_seconds=0.01)
    async with a_pool.using(KEYS[0], wake) as busy:
        with pytest.raises(PoolFull):
            await use(a_pool, KEYS[1])
        assert busy.is_alive
    await use(a_pool, KEYS[1])
    await a_pool.close()


async def test_waiters_are_admitted_in_order() -> None:
    a_pool = pool(1)
    served: list[SessionId] = []

    async def serve(key: SessionId) -> None:
        async with a_pool.using(key, wake):
            served.append(key)
            await asyncio.sleep(0)

    async with a_pool.using(KEYS[8], wake):
        tasks = []
        for key in KEYS[:5]:
            tasks.append(asyncio.create_task(serve(key)))
            await asyncio.sleep(0)
    tasks.append(asyncio.create_task(serve(KEYS[5])))
    await asyncio.gather(*tasks)
    assert served == KEYS[:6]
    await a_pool.close()


@pytest.mark.parametrize("seed", range(5))
async def test_l3_the_pool_never_exceeds_its_limit(seed: int) -> None:
    chance = random.Random(seed)
    a_pool = pool(3)
    locks = {key: asyncio.Lock() for key in KEYS}

    async def visit() -> None:
        key = chance.choice(KEYS)
        async with locks[key], a_pool.using(key, wake) as member:
            for _ in range(chance.randrange(4)):
                await asyncio.sleep(0)
            assert isinstance(member, Sleeper)
            assert not member.is_closed
            if chance.random() < 0.2:
                member.is_alive = False

    async def leave_early() -> None:
        task = asyncio.create_task(visit())
        for _ in range(chance.randrange(6)):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})

    await asyncio.gather(*(leave_early() if chance.random() < 0.3 else visit() for _ in range(300)))
    assert Sleeper.most_awake == 3
    await a_pool.close()
    assert Sleeper.awake == 0


async def test_l4_members_that_are_idle_too_long_or_dead_are_evicted() -> None:
    clock = FakeClock()
    a_pool = pool(3, clock)
    await use(a_pool, KEYS[0])
    clock.advance(59)
    await use(a_pool, KEYS[1])
    (await use(a_pool, KEYS[2])).is_alive = False
    assert await a_pool.evict_idle() == [KEYS[2]]
    clock.advance(1)
    assert await a_pool.evict_idle() == [KEYS[0]]
    assert set(a_pool.states()) == {KEYS[1]}
    await a_pool.close()


async def test_l8_a_member_that_fails_to_wake_frees_its_slot() -> None:
    a_pool = pool(1)

    async def fail() -> Sleeper:
        raise OSError("no such program")

    with pytest.raises(OSError, match="no such program"):
        async with a_pool.using(KEYS[0], fail):
            pass
    await use(a_pool, KEYS[1])
    await a_pool.close()


async def test_a_dead_member_is_replaced_on_use() -> None:
    a_pool = pool(1)
    first = await use(a_pool, KEYS[0])
    first.is_alive = False
    assert await use(a_pool, KEYS[0]) is not first
    assert first.is_closed
    await a_pool.close()


async def test_closing_rejects_waiters() -> None:
    a_pool = pool(1)
    async with a_pool.using(KEYS[0], wake):
        waiting = asyncio.create_task(use(a_pool, KEYS[1]))
        await asyncio.sleep(0)
        closing = asyncio.create_task(a_pool.close())
        with pytest.raises(PoolFull):
            await waiting
        await closing
    with pytest.raises(PoolFull):
        await use(a_pool, KEYS[2])


async def test_an_admitted_waiter_keeps_its_slot() -> None:
    a_pool = pool(1)
    async with a_pool.using(KEYS[0], wake):
        second = asyncio.create_task(use(a_pool, KEYS[1]))
        await asyncio.sleep(0)
    assert not a_pool.has_room(KEYS[2]), "the free slot is reserved"
    await second
    assert a_pool.has_room(KEYS[2])
    await a_pool.close()


async def test_a_caller_cancelled_during_eviction_leaves_the_slot_to_the_next() -> None:
    may_leave = asyncio.Event()

    class SlowToLeave(Sleeper):
        async def close(self) -> None:
            await may_leave.wait()
            await super().close()

    async def wake_slow() -> Sleeper:
        return SlowToLeave()

    a_pool = pool(1, queue_seconds=50)
    async with a_pool.using(KEYS[0], wake_slow):
        pass
    impatient = asyncio.create_task(use(a_pool, KEYS[1]))
    await asyncio.sleep(0)
    patient = asyncio.create_task(use(a_pool, KEYS[2]))
    await asyncio.sleep(0)
    impatient.cancel()
    await asyncio.wait({impatient})
    may_leave.set()
    await patient
    await a_pool.close()


async def test_a_waiter_cancelled_while_admitted_admits_the_next() -> None:
    a_pool = pool(1, queue_seconds=50)
    async with a_pool.using(KEYS[0], wake):
        impatient = asyncio.create_task(use(a_pool, KEYS[1]))
        patient = asyncio.create_task(use(a_pool, KEYS[2]))
        for _ in range(3):
            await asyncio.sleep(0)
    impatient.cancel()  # admitted by the line above, but not running yet
    await asyncio.wait({impatient})
    async with asyncio.timeout(60):
        await patient
    assert impatient.cancelled()
    await a_pool.close()
