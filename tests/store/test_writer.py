"""The writer: short jobs run on the event loop while the disk is fast, all others on a thread, always in order."""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.store.sample_events import opened, said

import holdfast.store.sqlite.transaction as transaction
from holdfast.core.errors import HoldfastError, StoreUnavailable
from holdfast.store import Home
from holdfast.store.sqlite.store import SqliteStore
from holdfast.store.sqlite.transaction import Transaction
from holdfast.store.sqlite.writer import Writer

PLENTY = 1_000


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction, "FAST_COMMIT_SECONDS", 60)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "database"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE line (number INTEGER)")
    connection.close()
    return path


def explained(problem: sqlite3.Error | OSError) -> HoldfastError:
    return StoreUnavailable(str(problem))


@pytest.fixture
def writer(database: Path) -> Iterator[Writer]:
    made = Writer(
        lambda: sqlite3.connect(database, isolation_level=None, timeout=0, check_same_thread=False),
        explained,
        lambda connection, jobs: PLENTY,
        lambda: None,
    )
    yield made
    made.stop()


def thread(_: Transaction) -> int:
    return threading.get_ident()


async def warm(writer: Writer) -> None:
    """Submit jobs until the disk is known to be fast and the thread has no maintenance to do."""
    while await writer.submit(thread, may_run_inline=True) != threading.get_ident():
        pass


async def test_short_jobs_after_the_first_are_committed_on_the_event_loop(writer: Writer) -> None:
    here = threading.get_ident()
    assert await writer.submit(thread, may_run_inline=True) != here  # the speed of the disk is not known yet
    await warm(writer)
    assert await writer.submit(thread, may_run_inline=True) == here
    assert await writer.submit(thread) != here


async def test_a_slow_disk_is_left_to_the_thread(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction, "FAST_COMMIT_SECONDS", 0)
    here = threading.get_ident()
    assert here not in [await writer.submit(thread, may_run_inline=True) for _ in range(5)]


async def test_the_thread_maintains_the_log_in_time(database: Path) -> None:
    looked: list[int] = []

    def look(_: sqlite3.Connection, jobs: int) -> int:
        looked.append(jobs)
        return 3

    writer = Writer(
        lambda: sqlite3.connect(database, isolation_level=None, check_same_thread=False),
        explained,
        look,
        lambda: None,
    )
    for _ in range(100):
        await writer.submit(thread, may_run_inline=True)
    await asyncio.to_thread(writer.stop)
    assert sum(looked) in range(97, 101)
    assert max(looked) <= 4


async def test_jobs_submitted_together_share_a_commit_on_the_event_loop(writer: Writer) -> None:
    await warm(writer)
    seen: list[Transaction] = []
    await asyncio.gather(*(writer.submit(seen.append, may_run_inline=True) for _ in range(20)))
    assert len(set(map(id, seen))) == 1


async def test_jobs_run_and_report_in_order_on_either_thread(writer: Writer) -> None:
    done: list[int] = []
    reported: list[int] = []

    async def hand_in(number: int) -> None:
        def work(_: Transaction) -> int:
            done.append(number)
            return number

        await writer.submit(work, on_committed=reported.append, may_run_inline=number % 7 != 0)

    waiting = []
    for number in range(2_000):
        waiting.append(asyncio.ensure_future(hand_in(number)))
        if number % 3 == 0:
            await asyncio.sleep(0)
    await asyncio.gather(*waiting)
    assert done == reported == list(range(2_000))


async def test_results_are_delivered_in_commit_order(writer: Writer) -> None:
    await warm(writer)
    is_committing, may_commit = threading.Event(), threading.Event()
    heard: list[str] = []

    def wait() -> None:
        is_committing.set()
        may_commit.wait(30)

    def hold(transaction: Transaction) -> str:
        transaction.before_commit.append(wait)
        return "first"

    def add(text: str) -> "asyncio.Future[str]":
        return writer.submit(lambda _: text, on_committed=heard.append, may_run_inline=True)

    first = writer.submit(hold, on_committed=heard.append)
    is_committing.wait(30)
    second = add("second")  # the event loop would run it next, but the thread has taken it
    may_commit.set()
    while len(writer._undelivered) < 2 or writer._write_lock.locked():
        time.sleep(0.001)  # noqa: ASYNC251  # the event loop must not run in the meantime
    third = add("third")
    await asyncio.gather(first, second, third)
    assert heard == ["first", "second", "third"]


async def test_the_event_loop_is_not_blocked_while_another_process_writes(
    writer: Writer, database: Path
) -> None:
    await warm(writer)
    other = sqlite3.connect(database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waiting = writer.submit(thread, may_run_inline=True)
    for _ in range(50):
        await asyncio.sleep(0)
    assert not waiting.done()
    other.execute("ROLLBACK")
    other.close()
    assert await waiting != threading.get_ident()


async def test_a_job_that_fails_on_the_event_loop_is_retried_by_the_thread(writer: Writer) -> None:
    await warm(writer)
    tries: list[int] = []

    def work(transaction: Transaction) -> int:
        tries.append(threading.get_ident())
        if len(tries) == 1:
            raise sqlite3.OperationalError("disk I/O error")
        return transaction.failures

    assert await writer.submit(work, may_run_inline=True) == 1  # cached state is read again
    assert tries[0] == threading.get_ident() != tries[1]


async def test_an_error_of_the_sqlite3_module_does_not_end_the_writer(
    writer: Writer,
) -> None:
    await warm(writer)

    def work(transaction: Transaction) -> None:
        transaction.execute("SELECT ?", ())

    for may_run_inline in (True, False):
        with pytest.raises(StoreUnavailable, match="binding"):
            await writer.submit(work, may_run_inline=may_run_inline)
    assert await writer.submit(thread)


async def test_a_refusal_on_the_event_loop_fails_only_its_job(writer: Writer) -> None:
    await warm(writer)

    def refuse(_: Transaction) -> int:
        raise StoreUnavailable("no")

    first, second = writer.submit(refuse, may_run_inline=True), writer.submit(thread, may_run_inline=True)
    with pytest.raises(StoreUnavailable, match="no"):
        await first
    assert await second == threading.get_ident()


def test_an_interrupt_during_a_commit_loses_nothing(writer: Writer) -> None:
    tries: list[int] = []

    def work(transaction: Transaction) -> int:
        tries.append(1)
        transaction.execute("INSERT INTO line VALUES (1)")
        if len(tries) == 1:
            raise KeyboardInterrupt
        return int(transaction.execute("SELECT count(*) FROM line").fetchone()[0])

    async def hand_in() -> None:
        await warm(writer)
        waiting.append(writer.submit(work, may_run_inline=True))
        await waiting[0]

    async def hear() -> int:
        return await waiting[0]

    waiting: list[asyncio.Future[int]] = []
    loop = asyncio.new_event_loop()
    interrupted = loop.create_task(hand_in())
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(interrupted)
    assert loop.run_until_complete(hear()) == 1
    loop.run_until_complete(interrupted)
    loop.close()


async def test_jobs_submitted_before_stop_are_run(home: Home, disk: SqliteStore) -> None:
    journal = await disk.create(opened())
    await journal.append(said(0))
    waiting = [journal.append(said(number)) for number in range(1, 30)]
    await disk.close()
    await asyncio.gather(*waiting)
    assert len(journal.recorded) == 31


async def test_a_job_submitted_after_stop_is_refused(writer: Writer) -> None:
    await warm(writer)
    await asyncio.to_thread(writer.stop)
    for may_run_inline in (True, False):
        with pytest.raises(StoreUnavailable, match="closed"):
            await writer.submit(thread, may_run_inline=may_run_inline)
