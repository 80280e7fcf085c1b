"""Usage: what every store adds up from the events of all sessions, once each, whatever was looked at before."""

import sqlite3
from contextlib import closing
from decimal import Decimal

import pytest
from tests.store.sample_events import asked, opened, replied, said, turn

from holdfast.core import PERSON, EscalationId, FakeClock, Response
from holdfast.core.events import EscalationAnswered, ModelAsked, SessionReconfigured
from holdfast.store import Home, Store
from holdfast.store.sqlite.store import SqliteStore

DAY_MS = 24 * 60 * 60 * 1000


def answered(id: str = "e1") -> EscalationAnswered:
    return EscalationAnswered(
        escalation=EscalationId(id), response=Response(verdict="approve"), principal=PERSON, transport="test"
    )


async def summed(store: Store, since_day: str = "") -> list[tuple[str, str, int, Decimal | None]]:
    """Model, folder, requests and cost of each row."""
    found = await store.usage(since_day=since_day)
    return [(each.key.model, each.key.folder, each.counts.requests, each.counts.cost_usd) for each in found]


async def test_every_event_counts_once_however_often_somebody_looks(store: Store) -> None:
    journal = await store.create(opened())
    other = await store.create(opened())
    for number in range(1, 4):
        await journal.append(*turn(number))
        await other.append(*turn(number))
        assert await summed(store) == [("scripted", "/project", 2 * number, Decimal("0.5") * number)]
    assert await summed(store) == [("scripted", "/project", 6, Decimal("1.5"))]
    assert {each.session: each.counts.requests for each in await store.session_usage()} == {
        journal.session: 3,
        other.session: 3,
    }


async def test_how_long_people_took_is_known_across_two_looks(store: Store, clock: FakeClock) -> None:
    journal = await store.create(opened())
    await journal.append(said(1), asked(1, "e1"), asked(1, "e2"))
    [total] = await store.usage()
    assert (total.counts.prompts, total.counts.answered) == (2, 0)
    clock.advance(90)
    await journal.append(answered("e1"))
    [total] = await store.usage()
    assert (total.counts.prompts, total.counts.answered, total.counts.answer_ms) == (2, 1, 90_000)


async def test_days_models_and_folders_are_apart(store: Store, clock: FakeClock) -> None:
    journal = await store.create(opened())
    await journal.append(*turn(1))
    [first] = await store.usage()
    clock.advance(3 * DAY_MS / 1000)
    await journal.append(ModelAsked(turn=2, step=1, model="big"), replied(2, cost=None))
    await journal.append(SessionReconfigured(workspace="/other"), replied(2))
    days = {each.key.day for each in await store.usage()}
    assert len(days) == 2
    assert await summed(store, max(days)) == [
        ("big", "/other", 1, Decimal("0.25")),
        ("big", "/project", 1, None),
    ]
    assert first.key.day == min(days)


async def test_a_fork_counts_only_what_it_did_itself(store: Store) -> None:
    journal = await store.create(opened())
    await journal.append(*turn(1))
    fork = await store.fork(journal.session, at=journal.recorded[-1].seq, opened=opened())
    await fork.append(*turn(2))
    assert await summed(store) == [("scripted", "/project", 2, Decimal("0.5"))]


@pytest.mark.parametrize("is_looked_at", [True, False])
async def test_a_deleted_session_does_not_count(store: Store, is_looked_at: bool) -> None:
    kept, gone = await store.create(opened()), await store.create(opened())
    await kept.append(*turn(1))
    await gone.append(*turn(1), said(2), asked(2))
    if is_looked_at:
        assert len(await store.usage()) == 1
    await gone.release()
    await store.delete(gone.session)
    assert await summed(store) == [("scripted", "/project", 1, Decimal("0.25"))]
    assert [each.session for each in await store.session_usage()] == [kept.session]
    await kept.release()
    await store.delete(kept.session)
    assert await store.usage() == []


async def test_a_damaged_or_foreign_file_is_rebuilt(home: Home, clock: FakeClock) -> None:
    store = await SqliteStore.start(home, clock=clock)
    try:
        journal = await store.create(opened())
        await journal.append(*turn(1))
        wanted = await summed(store)
        home.usage.write_bytes(b"not a database at all" * 100)
        assert await summed(store) == wanted
        with closing(sqlite3.connect(home.usage)) as connection, connection:
            connection.execute("UPDATE progress SET hash = x'00'")
            connection.execute("UPDATE total SET requests = 99")
        assert await summed(store) == wanted
        with closing(sqlite3.connect(home.usage)) as connection, connection:
            connection.execute("DROP TABLE total")
            connection.execute("CREATE TABLE total (day TEXT)")
        assert await summed(store) == wanted
    finally:
        await store.close()


async def test_a_look_reads_only_what_is_new(home: Home, clock: FakeClock) -> None:
    store = await SqliteStore.start(home, clock=clock)
    try:
        journal = await store.create(opened())
        await journal.append(*turn(1))
        await store.usage()
        with closing(sqlite3.connect(home.database)) as connection, connection:
            connection.execute("UPDATE event SET body = x'00' WHERE seq < 3")  # reading them again would show
        await journal.append(*turn(2))
        assert [each.counts.requests for each in await store.usage()] == [2]
    finally:
        await store.close()
