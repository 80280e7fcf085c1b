"""What is peculiar to the store in PostgreSQL: fences, groups, lost answers, outages and its schema."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.store.conftest import PRESENCE_SECONDS
from tests.store.sample_events import opened, said, turn

from holdfast.core import FakeClock, SessionId, SystemClock
from holdfast.core.errors import InvalidInput, LeaseLost, SessionHeld, StoreUnavailable
from holdfast.core.events import MessagePosted, RecordedEvent
from holdfast.store import Home, open_work_store, store_status

if TYPE_CHECKING:
    from tests.support.postgres import Databases

    from holdfast.store.postgres.store import PostgresStore

PATIENCE_SECONDS = 60


@pytest.fixture
async def url(postgres_databases: "Databases") -> AsyncIterator[str]:
    address = await postgres_databases.take()
    yield address
    postgres_databases.give_back(address)


async def start(url: str, folder: Path, **options: float) -> "PostgresStore":
    from holdfast.store.postgres.store import PostgresStore

    options = {"presence_seconds": PRESENCE_SECONDS, **options}
    return await PostgresStore.start(url, home=Home(folder / "home"), clock=FakeClock(), **options)  # type: ignore[arg-type]


async def sql(url: str, statement: str, *arguments: object) -> Any:
    import asyncpg

    connection = await asyncpg.connect(url, server_settings={"search_path": "holdfast"})
    try:
        return await connection.fetchval(statement, *arguments)
    finally:
        await connection.close()


def texts(recorded: "list[RecordedEvent] | Any") -> list[str]:
    return [one.event.text for one in recorded if isinstance(one.event, MessagePosted)]


async def test_a_process_that_was_not_seen_for_some_seconds_is_not_listed(url: str) -> None:
    for id, seen in (("dead", "now() - interval '5 s'"), ("alive", "now() + interval '1 hour'")):
        await sql(
            url,
            f"INSERT INTO worker (tenant, id, host, pid, version, seen) VALUES ('default', '{id}', 'h', 1, '1', {seen})",
        )
    assert [worker.id for worker in (await store_status(url)).workers] == ["alive"]


async def test_a_holder_that_was_not_seen_loses_its_session_and_can_write_nothing(
    url: str, tmp_path: Path
) -> None:
    first, second = await start(url, tmp_path), await start(url, tmp_path)
    journal = await first.create(opened())
    await journal.append(said(1, "kept"))
    with pytest.raises(SessionHeld):
        await second.open(journal.session)
    await first._presence.stop()  # as in a process that hangs
    await sql(url, "UPDATE worker SET seen = now() - interval '1 hour'")
    again = await second.open(journal.session)
    await again.append(said(2, "mine"))
    with pytest.raises(LeaseLost):
        await journal.append(said(2, "late"))
    assert texts(await second.read(journal.session)) == ["kept", "mine"]
    await first.close()
    await second.close()


async def test_a_restarted_process_is_not_taken_for_its_past(url: str, tmp_path: Path) -> None:
    first, second = await start(url, tmp_path), await start(url, tmp_path)
    assert first._presence.id != second._presence.id
    assert first._presence.pid == second._presence.pid
    await first.close()
    await second.close()


async def test_an_append_is_one_statement_and_many_sessions_share_one(url: str, tmp_path: Path) -> None:
    store = await start(url, tmp_path)
    journals = [await store.create(opened()) for _ in range(40)]
    before = store._writer.statements
    await journals[0].append(*turn(1))
    assert store._writer.statements == before + 1
    await asyncio.gather(*(journal.append(said(2)) for journal in journals for _ in range(3)))
    assert store._writer.statements <= before + 3
    await store.close()


async def test_a_lost_lease_does_not_harm_the_other_sessions_of_its_group(url: str, tmp_path: Path) -> None:
    store = await start(url, tmp_path)
    journals = [await store.create(opened()) for _ in range(5)]
    await sql(url, "UPDATE lease SET fence = fence + 1 WHERE session = $1", journals[2].session)
    results = await asyncio.gather(*(journal.append(said(1)) for journal in journals), return_exceptions=True)
    assert [type(result) for result in results] == [type(None), type(None), LeaseLost, type(None), type(None)]
    await store.close()


async def test_an_append_whose_answer_is_lost_is_recorded_once(url: str, tmp_path: Path) -> None:
    import asyncpg

    store = await start(url, tmp_path)
    journal = await store.create(opened())
    await journal.append(said(1, "one"))
    writer = store._writer
    send, lost = writer._send, 0

    async def losing(connection: Any, staged: Any) -> Any:
        nonlocal lost
        lost += 1
        if lost == 1:  # the server never sees it
            raise asyncpg.ConnectionDoesNotExistError("cut before")
        if lost == 2:  # it is carried out, and nobody hears of it
            from holdfast.store.postgres.writer import _record

            await _record(connection, writer._worker, staged)
            raise asyncpg.ConnectionDoesNotExistError("cut after")
        return await send(connection, staged)

    writer._send = losing  # type: ignore[method-assign]
    await journal.append(said(2, "two"))
    await journal.append(said(3, "three"))
    assert texts(await store.read(journal.session)) == texts(journal.recorded) == ["one", "two", "three"]
    assert lost >= 3
    assert (await store.verify(journal.session)).is_intact
    await store.close()


async def test_what_was_recorded_by_an_append_that_failed_is_found_by_the_next(
    url: str, tmp_path: Path
) -> None:
    import asyncpg

    from holdfast.store.postgres.writer import _record

    store = await start(url, tmp_path, outage_seconds=0)
    journal = await store.create(opened())
    writer = store._writer
    send = writer._send

    async def losing(connection: Any, staged: Any) -> Any:
        await _record(connection, writer._worker, staged)
        raise asyncpg.ConnectionDoesNotExistError("cut")

    writer._send = losing  # type: ignore[method-assign]
    with pytest.raises(StoreUnavailable):
        await journal.append(said(1, "one"))
    writer._send = send  # type: ignore[method-assign]
    await journal.append(said(2, "two"))
    assert texts(journal.recorded) == texts(await store.read(journal.session)) == ["one", "two"]
    await store.close()


async def test_cut_connections_are_opened_again(url: str, tmp_path: Path) -> None:
    store = await start(url, tmp_path)
    journal = await store.create(opened())
    cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    for number in range(3):
        await sql(url, cut)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await journal.append(said(number, str(number)))
            assert len(await store.read(journal.session)) == number + 2
            assert await store.put_blob(b"content")
    await store.close()


async def test_news_wakes_a_watcher_of_another_store(url: str, tmp_path: Path) -> None:
    first, second = await start(url, tmp_path), await start(url, tmp_path)
    journal = await first.create(opened())
    row = await second.last_row()
    with second.watch() as watch:
        await journal.append(said(1))
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await second.events_after(row):
                await watch.changed()
    await first.close()
    await second.close()


async def test_an_event_that_is_committed_late_is_not_missed(url: str, tmp_path: Path) -> None:
    import asyncpg

    store = await start(url, tmp_path)
    slow, quick = await store.create(opened()), await store.create(opened())
    row = await store.last_row()
    connection = await asyncpg.connect(url)
    transaction = connection.transaction()
    await transaction.start()
    await connection.fetchval("SELECT pg_current_xact_id()")  # it has a number now, and is not committed
    await quick.append(said(1, "quick"))
    reading = asyncio.create_task(store.events_after(row))
    await transaction.rollback()
    await connection.close()
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert [one.session for one in await reading] == [quick.session]
    await slow.append(said(1, "slow"))
    assert [one.session for one in await store.events_after(row)] == [quick.session, slow.session]
    await store.close()


async def test_a_database_restored_on_another_server_goes_on_behind_its_last_event(
    url: str, tmp_path: Path
) -> None:
    store = await start(url, tmp_path)
    journal = await store.create(opened())
    await journal.append(said(1, "needle old"))
    session = journal.session
    await store.close()
    await sql(url, "UPDATE event SET place = place + 1000000000")  # numbers of a busier server
    store = await start(url, tmp_path)
    row = await store.last_row()
    journal = await store.open(session)
    await journal.append(said(2, "needle new"))
    assert [one.seq for one in await store.events_after(row)] == [3]
    assert [hit.turn for hit in await store.search("needle")] == [2, 1]
    await sql(url, "UPDATE place_offset SET value = 0")
    await store.close()


async def test_a_newer_schema_is_refused_with_a_way_out(url: str, tmp_path: Path) -> None:
    from holdfast.store.postgres.migrations import NEWEST, migrate

    await sql(url, "INSERT INTO migration (number, title) VALUES ($1, 'of the future')", NEWEST + 1)
    try:
        for attempt in (start(url, tmp_path), migrate(url)):
            with pytest.raises(StoreUnavailable) as refusal:
                await attempt
            assert "upgrade Holdfast" in (refusal.value.hint or "")
    finally:
        await sql(url, "DELETE FROM migration WHERE number > $1", NEWEST)


async def test_an_older_schema_is_refused_until_it_is_migrated(
    postgres_databases: "Databases", tmp_path: Path
) -> None:
    from holdfast.store.postgres.migrations import MIGRATIONS, NEWEST, migrate

    url = await postgres_databases.take_blank()
    try:
        old = [one for one in MIGRATIONS if one.number <= 3]
        table = "CREATE TABLE holdfast.migration (number integer PRIMARY KEY, title text NOT NULL, at timestamptz DEFAULT now())"
        await sql(url, f"DO $do$ BEGIN CREATE SCHEMA holdfast; {table}; END $do$")
        for one in old:
            await sql(url, f"DO $do$ BEGIN {one.sql} END $do$")
            await sql(url, "INSERT INTO migration (number, title) VALUES ($1, $2)", one.number, one.title)
        content = b"kept by an older version"
        row = (hashlib.sha256(content).digest(), len(content), content)
        await sql(url, "INSERT INTO blob (digest, size, content, put_ms) VALUES ($1, $2, $3, 0)", *row)
        with pytest.raises(StoreUnavailable) as refusal:
            await start(url, tmp_path)
        assert "holdfast store migrate" in (refusal.value.hint or "")
        assert [one.number for one in await migrate(url)] == list(range(4, NEWEST + 1))
        assert await migrate(url) == ()
        store = await start(url, tmp_path)
        assert await store.blob(row[0].hex()) == content, "what was there belongs to the default tenant"
        await store.close()
    finally:
        await migrate(url)
        postgres_databases.give_back(url)


async def test_a_changed_event_is_found_by_verification(url: str, tmp_path: Path) -> None:
    store = await start(url, tmp_path)
    journal = await store.create(opened())
    await journal.append(*turn(1))
    await journal.release()
    await sql(
        url,
        "UPDATE event SET body = convert_to(replace(convert_from(body, 'UTF8'), 'principal', 'prinzipal'), 'UTF8') WHERE seq = 2",
    )
    found = await store.verify(journal.session)
    assert [problem.seq for problem in found.problems][:1] == [2]
    assert (await store.summary(journal.session)).is_damaged
    await store.close()


async def test_an_address_with_a_mistake_is_refused(tmp_path: Path) -> None:
    with pytest.raises((InvalidInput, StoreUnavailable)):
        await start("postgresql://%%%", tmp_path)


async def test_news_of_many_appends_is_sent_together_and_after_the_commit(url: str, tmp_path: Path) -> None:
    import asyncpg

    from holdfast.store.postgres.database import SQL

    store = await start(url, tmp_path)
    heard: list[str] = []
    listener = await asyncpg.connect(url)
    await listener.add_listener("holdfast:default", lambda *news: heard.append(str(news[-1])))
    journals = [await store.create(opened()) for _ in range(5)]
    await asyncio.gather(*(journal.append(*turn(1)) for journal in journals for _ in range(10)))
    await store.close()  # what was not sent yet is sent
    async with asyncio.timeout(60):
        while not heard:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await listener.close()
    assert len(heard) < 50, "fewer notifications than appends"
    assert set(heard) == {""}, "whoever may connect can listen, so a notification names no session"
    assert "notify" not in SQL["append"], (
        "never in the transaction of an append, which would undo committing in groups"
    )


async def test_requests_that_arrive_together_share_a_transaction(url: str, tmp_path: Path) -> None:
    store = await start(url, tmp_path)
    sessions = [(await store.create(opened())).session for _ in range(20)]
    groups: list[list[SessionId]] = []

    async def post_jobs(_: object, sessions: Sequence[SessionId]) -> None:
        groups.append(list(sessions))

    asked = [*sessions, sessions[0]]  # one of them twice
    await asyncio.gather(*(store.post_request(session, b"{}", post_jobs=post_jobs) for session in asked))
    assert groups == [sessions], "and one job for both requests of a session"
    assert [len(await store.requests(session)) for session in sessions] == [2] + [1] * 19
    await store.close()


async def test_an_address_may_have_either_scheme_but_none_of_another_library(
    url: str, tmp_path: Path
) -> None:
    short = url.replace("postgresql://", "postgres://", 1)
    store = await open_work_store(Home(tmp_path), short, clock=SystemClock())
    await store.close()
    with pytest.raises(InvalidInput):
        await open_work_store(
            Home(tmp_path), url.replace("postgresql", "postgresql+asyncpg", 1), clock=SystemClock()
        )


async def test_a_cancellation_that_meets_the_end_of_a_connection_is_not_lost() -> None:
    from holdfast.store.postgres.database import close_quickly

    may_close = asyncio.Event()

    class Connection:
        async def close(self) -> None:
            await may_close.wait()

    closing = asyncio.create_task(close_quickly(Connection()))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    may_close.set()
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
