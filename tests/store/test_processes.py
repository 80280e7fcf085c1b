"""Several processes on one store: leases, errors for other processes, and processes that end or stop."""

import asyncio
import os
import random
import signal
from contextlib import AsyncExitStack, suppress

import pytest
from tests.store.processes import answer, child, order, until_stopped
from tests.store.sample_events import opened, said

from holdfast.core import FakeClock, SystemClock
from holdfast.core.errors import SessionHeld
from holdfast.core.events import MessagePosted
from holdfast.store import Home, open_when_released, tail
from holdfast.store.sqlite.store import SqliteStore


async def new_session(home: Home) -> str:
    store = await SqliteStore.start(home, clock=SystemClock())
    session = (await store.create(opened())).session
    await store.close()
    return session


async def texts(store: SqliteStore, session: str) -> list[str]:
    recorded = await store.read(await store.find(session))
    return [one.event.text for one in recorded if isinstance(one.event, MessagePosted)]


async def test_a_second_process_learns_the_holder_and_can_read(disk: SqliteStore, home: Home) -> None:
    session = await new_session(home)
    async with child("hold", home, session) as other:
        assert await answer(other) == "held"
        with pytest.raises(SessionHeld, match=f"process {other.pid}"):
            await disk.open(await disk.find(session))
        holder = await disk.holder(await disk.find(session))
        assert holder is not None
        assert holder.pid == other.pid
        assert await order(other, "hello") == "written"
        assert await texts(disk, session) == ["hello"]


async def test_a_following_process_sees_the_holders_events(disk: SqliteStore, home: Home) -> None:
    session = await disk.find(await new_session(home))
    async with child("hold", home, session) as other:
        assert await answer(other) == "held"
        assert await order(other, "first") == "written"
        along = tail(disk, session, after=1)
        heard = [await anext(along)]
        assert await order(other, "second") == "written"
        heard.append(await anext(along))
        await along.aclose()  # type: ignore[attr-defined]
    assert [one.seq for one in heard] == [2, 3]


async def test_a_waiting_process_gets_the_session_when_the_holder_ends(disk: SqliteStore, home: Home) -> None:
    session = await disk.find(await new_session(home))
    async with child("hold", home, session) as other:
        assert await answer(other) == "held"
        with pytest.raises(SessionHeld):
            await open_when_released(disk, session, timeout_seconds=0)
        waiting = asyncio.create_task(open_when_released(disk, session, timeout_seconds=30))
        other.kill()
        assert (await waiting).session == session


async def test_a_killed_process_holds_no_lease(disk: SqliteStore, home: Home) -> None:
    session = await new_session(home)
    async with child("hold", home, session) as other:
        assert await answer(other) == "held"
        assert await order(other, "last words") == "written"
        other.kill()
        await other.wait()
        journal = await disk.open(await disk.find(session))
        await journal.append(said(2, "mine"))
    assert await texts(disk, session) == ["last words", "mine"]
    assert (await disk.verify(journal.session)).is_intact


async def test_a_stopped_holder_loses_its_lease_and_its_next_write_is_refused(
    disk: SqliteStore, home: Home
) -> None:
    session = await new_session(home)
    async with child("hold", home, session) as other:
        assert await answer(other) == "held"
        assert await order(other, "before") == "written"
        other.send_signal(signal.SIGSTOP)
        await until_stopped(other)
        journal = await disk.open(await disk.find(session))
        await journal.append(said(2, "mine"))
        other.send_signal(signal.SIGCONT)
        assert await order(other, "late") == "lease-lost"
        await journal.append(said(3, "still mine"))
    assert await texts(disk, session) == ["before", "mine", "still mine"]
    assert (await disk.verify(journal.session)).is_intact


async def test_an_old_fencing_number_is_never_valid_again(home: Home, clock: FakeClock) -> None:
    first = await SqliteStore.start(home, clock=clock)
    second = await SqliteStore.start(home, clock=clock)
    journal = await first.create(opened())
    for n in range(5):
        await journal.release()
        journal = await (second if n % 2 == 0 else first).open(journal.session)
        await journal.append(said(n))
    assert [one.seq for one in journal.recorded] == list(range(1, 7))
    await first.close()
    await second.close()


async def _fight(home: Home, *, fighters: int, rounds: int, stops: int) -> None:
    session = await new_session(home)
    dice = random.Random(7)
    async with AsyncExitStack() as stack:
        others = [
            await stack.enter_async_context(child("fight", home, session, str(n), str(rounds)))
            for n in range(fighters)
        ]
        for _ in range(stops):
            victim = dice.choice(others)
            if victim.returncode is None:
                with suppress(ProcessLookupError):  # it had ended, and nobody knew yet
                    os.kill(victim.pid, signal.SIGSTOP)
                    await asyncio.sleep(0.002)
                    os.kill(victim.pid, signal.SIGCONT)
        answers = [(await other.communicate())[0].decode().split("\n") for other in others]
    for lines in answers:
        assert f"wrote {rounds}" in lines
        assert set(lines) <= {f"wrote {rounds}", "refused lease-lost", ""}
    store = await SqliteStore.start(home, clock=SystemClock())
    assert (await store.verify(await store.find(session))).is_intact
    found = await texts(store, session)
    for n in range(fighters):
        mine = [text for text in found if text.startswith(f"{n}:")]
        assert mine == [f"{n}:{number}" for number in range(rounds)]
    await store.close()


async def test_contention_for_a_lease_loses_and_duplicates_nothing(home: Home) -> None:
    await _fight(home, fighters=3, rounds=25, stops=20)


@pytest.mark.soak
async def test_long_contention_for_a_lease_loses_and_duplicates_nothing(home: Home) -> None:
    await _fight(home, fighters=4, rounds=1000, stops=2000)


async def _create(home: Home, *, processes: int, each: int) -> None:
    async with AsyncExitStack() as stack:
        others = [await stack.enter_async_context(child("create", home, str(each))) for _ in range(processes)]
        answers = [(await other.communicate())[0].decode().split() for other in others]
    store = await SqliteStore.start(home, clock=SystemClock())
    listed = {line.id for line in await store.sessions()}
    assert listed == {id for ids in answers for id in ids}
    assert len(listed) == processes * each
    await store.close()


async def test_four_processes_that_create_a_hundred_sessions_each_make_four_hundred(home: Home) -> None:
    await _create(home, processes=4, each=100)


async def test_nothing_acknowledged_is_lost_when_a_writer_is_killed(home: Home) -> None:
    await _kill_writers(home, times=4)


@pytest.mark.soak
async def test_nothing_acknowledged_is_lost_when_writers_are_killed_hundreds_of_times(home: Home) -> None:
    await _kill_writers(home, times=300)


async def _kill_writers(home: Home, *, times: int) -> None:
    session = await new_session(home)
    dice = random.Random(11)
    acknowledged = 0
    for _ in range(times):
        async with child("write", home, session) as writer:
            assert writer.stdout is not None
            for _ in range(dice.randrange(1, 8)):
                acknowledged = int(await writer.stdout.readline())
            await asyncio.sleep(dice.random() * 0.003)
            writer.kill()
            rest = (await writer.stdout.read()).split()
            acknowledged = int(rest[-1]) if rest else acknowledged
        store = await SqliteStore.start(home, clock=SystemClock())
        id = await store.find(session)
        found = await store.verify(id)
        assert found.is_intact
        assert found.events >= acknowledged
        assert await texts(store, session) == [str(n) for n in range(2, found.events + 1)]
        await store.close()
