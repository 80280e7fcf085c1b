"""Group commit: which jobs share a commit, what a commit costs, and preallocation of the log."""

import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest
from tests.store.sample_events import opened, said, turn
from tests.store.test_crashes import copy

import holdfast.store.sqlite.transaction as transaction
import holdfast.store.sqlite.wal_prealloc as wal_prealloc
from holdfast.core import FakeClock, SessionId
from holdfast.core.errors import StoreUnavailable
from holdfast.core.events import MessagePosted
from holdfast.store import Home
from holdfast.store.sqlite.database import PAGE_BYTES, connect
from holdfast.store.sqlite.store import SqliteStore
from holdfast.store.sqlite.transaction import Transaction


def pages_of(log: Path) -> int:
    return log.stat().st_size // (PAGE_BYTES + 24)


async def test_a_turn_of_the_newest_session_writes_few_pages(disk: SqliteStore, home: Home) -> None:
    journal = await disk.create(opened())
    log = Path(f"{home.database}-wal")
    await journal.append(*turn(1))
    before = pages_of(log)
    await journal.append(*turn(2))
    assert pages_of(log) - before <= 3  # the events, their index entries, the session row
    other = await disk.create(opened())
    before = pages_of(log)
    await journal.append(*turn(3))
    assert 3 < pages_of(log) - before <= 6  # the two sort orders of the list as well
    assert [line.id for line in await disk.sessions()] == [journal.session, other.session]


async def test_the_newest_session_moves_down_when_another_is_active(disk: SqliteStore) -> None:
    one, two = await disk.create(opened()), await disk.create(opened())
    order = [two, one]
    for number, (who, *together) in enumerate([[one], [one], [two], [two, one], [one], [one], [two]]):
        await asyncio.gather(*(each.append(said(number)) for each in (who, *together)))
        last = together[-1] if together else who
        order = [last, *(each for each in order if each is not last)]
        assert [line.id for line in await disk.sessions()] == [each.session for each in order]


async def test_preallocation_does_not_change_the_records(
    home: Home, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wal_prealloc, "CHECK_INTERVAL_JOBS", 1)
    monkeypatch.setattr(wal_prealloc, "MIN_FREE_BYTES", 0)
    store = await SqliteStore.start(home, clock=clock)
    journal = await store.create(opened(), session=SessionId("one"))
    log = Path(f"{home.database}-wal")
    for number in range(30):
        await journal.append(said(number, str(number)))
    assert wal_prealloc.STEP_BYTES < log.stat().st_size < 2 * wal_prealloc.STEP_BYTES
    crashed = Home(tmp_path / "crashed")
    await asyncio.to_thread(copy, home, crashed)
    for place in (home, crashed):
        if place is home:
            await store.close()
        store = await SqliteStore.start(place, clock=clock)
        assert (await store.verify(SessionId("one"))).is_intact
        assert len(await store.read(SessionId("one"))) == 31
        await store.close()


async def test_nothing_is_preallocated_with_little_disk_space(
    disk: SqliteStore, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wal_prealloc, "CHECK_INTERVAL_JOBS", 1)
    monkeypatch.setattr(wal_prealloc, "MIN_FREE_BYTES", 2**62)
    journal = await disk.create(opened())
    for number in range(5):
        await journal.append(said(number))
    assert Path(f"{home.database}-wal").stat().st_size < wal_prealloc.STEP_BYTES


async def test_nothing_is_preallocated_while_another_process_writes(
    disk: SqliteStore, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wal_prealloc, "CHECK_INTERVAL_JOBS", 1)
    make_room, mine = wal_prealloc.WalPreallocator(home.database), connect(home.database, timeout_seconds=0)
    theirs = connect(home.database)
    theirs.execute("BEGIN IMMEDIATE")
    before = Path(f"{home.database}-wal").stat().st_size
    make_room(mine, 1)
    assert Path(f"{home.database}-wal").stat().st_size == before
    theirs.execute("ROLLBACK")
    for connection in (mine, theirs):
        connection.close()


async def test_all_jobs_that_wait_for_a_stopped_process_fail_together(
    disk: SqliteStore, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transaction, "LOCK_TIMEOUT_SECONDS", 0.01)
    journal = await disk.create(opened())
    stopped = sqlite3.connect(home.database, isolation_level=None)
    stopped.execute("BEGIN IMMEDIATE")
    results = await asyncio.gather(*(journal.append(said(n)) for n in range(20)), return_exceptions=True)
    assert {type(problem) for problem in results} == {StoreUnavailable}
    assert "locked" in str(results[0])
    stopped.execute("ROLLBACK")
    stopped.close()
    monkeypatch.setattr(transaction, "LOCK_TIMEOUT_SECONDS", 10.0)
    await journal.append(said(1, "after"))
    assert [one.event.text for one in journal.recorded if isinstance(one.event, MessagePosted)] == ["after"]


async def test_a_file_that_cannot_be_removed_does_not_repeat_the_job(disk: SqliteStore) -> None:
    journal = await disk.create(opened())

    def fails() -> None:
        raise OSError("no")

    def work(transaction: Transaction) -> None:
        transaction.after_commit.append(fails)

    await asyncio.gather(disk.writing(work), journal.append(said(1)), disk.writing(work))
    assert len(await disk.read(journal.session)) == 2
    assert len(journal.recorded) == 2


async def test_pruning_removes_files_of_deleted_sessions_that_a_crash_left(
    disk: SqliteStore, home: Home
) -> None:
    doomed = await disk.create(opened(), session=SessionId("doomed"))
    alive = await disk.create(opened(), session=SessionId("alive"))
    await doomed.release()
    await disk.delete(doomed.session)
    for session in (doomed.session, alive.session):
        home.prepare_session(session)
    await disk.sweep()
    assert not home.session_folder(doomed.session).exists()
    assert home.session_folder(alive.session).exists()


@pytest.mark.parametrize("is_replaced", [False, True])
async def test_a_write_to_a_removed_database_is_not_acknowledged(
    home: Home, clock: FakeClock, is_replaced: bool
) -> None:
    store = await SqliteStore.start(home, clock=clock)
    journal = await store.create(opened())
    await journal.append(said(1, "kept"))
    home.database.rename(home.root / "elsewhere")
    if is_replaced:
        home.database.write_bytes(b"")
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await journal.append(said(2, "lost"))
    assert [entry.seq for entry in journal.recorded] == [1, 2]
    with pytest.raises(StoreUnavailable):
        await store.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("holdfast-")]


async def test_a_removed_database_is_not_replaced_by_an_empty_one(home: Home, clock: FakeClock) -> None:
    store = await SqliteStore.start(home, clock=clock)
    journal = await store.create(opened())
    home.database.rename(home.root / "elsewhere")
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="removed or replaced"):
            await journal.append(said(1))
    assert not home.database.exists()
    (home.root / "elsewhere").rename(home.database)
    await journal.append(said(2, "continues"))
    assert journal.recorded == await store.read(journal.session)
    assert (await store.verify(journal.session)).is_intact
    await store.close()


async def test_an_open_cancelled_during_its_commit_holds_no_lease(
    disk: SqliteStore,
) -> None:
    created = await disk.create(opened())
    await created.release()
    may_go_on = threading.Event()
    held_up = disk._writer.submit(lambda _: may_go_on.wait(30))
    opening = asyncio.create_task(disk.open(created.session))
    await asyncio.sleep(0)
    opening.cancel()
    await asyncio.gather(opening, return_exceptions=True)  # all its jobs share the commit of the blocked one
    may_go_on.set()
    await held_up
    again = await disk.open(created.session)
    await again.append(said(1))
