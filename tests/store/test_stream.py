"""What a page over all sessions reads from a store: pages of the list, what waits, and the events of all sessions in order."""

import asyncio
import re
import sqlite3
from contextlib import closing

import pytest
from tests.store.processes import child, order
from tests.store.sample_events import asked, ended, opened, said, turn

from holdfast.core import PERSON, EscalationId, FakeClock, Response, SystemClock
from holdfast.core.errors import InvalidInput, SessionNotFound
from holdfast.core.events import EscalationAnswered, MessagePosted, SessionClosed, SessionRewound
from holdfast.core.ids import SessionId
from holdfast.store import Home, Store
from holdfast.store.sqlite.store import SqliteStore


async def test_pages_cover_every_session_once_newest_first(store: Store) -> None:
    made = [(await store.create(opened(name=f"s{n}"))).session for n in range(7)]
    seen: list[str] = []
    place: str | None = None
    sizes: list[int] = []
    while True:
        page = await store.session_page(before=place, limit=3)
        seen += [each.id for each in page.sessions]
        sizes.append(len(page.sessions))
        if (place := page.next) is None:
            break
    assert seen == made[::-1]
    assert sizes == [3, 3, 1]


async def test_a_session_that_moves_up_between_two_pages_is_not_shown_twice_on_the_second(
    store: Store,
) -> None:
    journals = [await store.create(opened()) for _ in range(4)]
    first = await store.session_page(limit=2)
    await journals[3].append(said(1))
    second = await store.session_page(before=first.next, limit=2)
    assert [each.id for each in second.sessions] == [journals[1].session, journals[0].session]


async def test_a_page_can_be_of_one_folder_or_of_what_is_active(store: Store) -> None:
    here = await store.create(opened(folder="/here"))
    there = await store.create(opened(folder="/there"))
    await there.append(said(1))
    assert [each.id for each in (await store.session_page(folder="/here")).sessions] == [here.session]
    assert [each.id for each in (await store.session_page(activity="processing")).sessions] == [there.session]
    await there.append(asked(1))
    assert [each.id for each in (await store.session_page(activity="waiting")).sessions] == [there.session]


async def test_an_empty_store_has_one_empty_page(store: Store) -> None:
    page = await store.session_page()
    assert page.sessions == ()
    assert page.next is None


@pytest.mark.parametrize("place", ["", "x", "-1.a", "9" * 30, "1_0.a", "٣.a"])
async def test_a_place_that_no_page_named_is_refused(disk: SqliteStore, place: str) -> None:
    with pytest.raises(InvalidInput):
        await disk.session_page(before=place)


async def test_what_waits_is_listed_until_it_is_answered(store: Store) -> None:
    one, two = await store.create(opened(name="one")), await store.create(opened())
    await one.append(said(1), asked(1, "e1"), asked(1, "e2"))
    await two.append(said(1), asked(1, "e3"))
    assert [(each.name, each.escalation.id) for each in await store.waiting()] == [
        (None, "e3"),
        ("one", "e1"),
        ("one", "e2"),
    ]
    assert [each.escalation.id for each in await store.waiting(two.session)] == ["e3"]
    answer = EscalationAnswered(
        escalation=EscalationId("e1"), response=Response(verdict="deny"), principal=PERSON, transport="test"
    )
    await one.append(answer)
    await two.append(SessionClosed(how="aborted"))
    assert [each.escalation.id for each in await store.waiting()] == ["e2"]
    assert await store.waiting(two.session) == []


async def test_a_rewind_takes_back_what_waits(store: Store) -> None:
    journal = await store.create(opened())
    await journal.append(*turn(1))
    last = journal.recorded[-1].seq
    await journal.append(said(2), asked(2))
    assert await store.waiting()
    await journal.append(SessionRewound(seq=last, turn=1, principal=PERSON))
    assert await store.waiting() == []


async def test_text_that_looks_like_a_waiting_session_is_not_one(store: Store) -> None:
    journal = await store.create(opened())
    await journal.append(said(1, '"activity":"waiting"'), ended(1))
    assert await store.waiting() == []
    assert (await store.session_page(activity="waiting")).sessions == ()


async def test_what_waits_in_an_unknown_session_is_an_error(store: Store) -> None:
    with pytest.raises(SessionNotFound):
        await store.waiting(SessionId("nobody"))


async def test_a_fork_shows_what_it_inherits(store: Store) -> None:
    journal = await store.create(opened())
    await journal.append(said(1), asked(1))
    fork = await store.fork(journal.session, at=journal.recorded[-1].seq, opened=opened())
    assert {each.session for each in await store.waiting()} == {journal.session, fork.session}


async def test_what_waits_in_a_home_of_an_older_version_is_listed(home: Home, clock: FakeClock) -> None:
    store = await SqliteStore.start(home, clock=clock)
    journal = await store.create(opened())
    await journal.append(said(1), asked(1))
    await store.close()
    with closing(sqlite3.connect(home.database)) as connection:
        (tally,) = connection.execute("SELECT tally FROM session").fetchone()
        old = re.sub(rb',"seq":\d+', b"", tally)
        assert old != tally
        connection.execute("DROP INDEX session_waiting")
        connection.execute("UPDATE session SET tally = ?", (old,))
        connection.commit()
    store = await SqliteStore.start(home, clock=clock)
    assert [each.escalation.id for each in await store.waiting()] == ["e1"]
    await store.close()


async def test_the_list_of_what_waits_reads_only_the_sessions_that_wait(disk: SqliteStore) -> None:
    plan = await disk.reading(
        lambda connection: connection.execute(
            "EXPLAIN QUERY PLAN SELECT id FROM session WHERE instr(tally, x'226163746976697479223a2277616974696e6722') > 0"
        ).fetchall()
    )
    assert any("session_waiting" in str(step) for step in plan)


async def test_events_of_all_sessions_come_in_one_order(store: Store) -> None:
    one, two = await store.create(opened()), await store.create(opened())
    start = await store.last_row()
    for number in range(3):
        await one.append(said(1, f"one {number}"))
        await two.append(said(1, f"two {number}"))
    events = await store.events_after(start)
    texts = [each.event.text for each in events if isinstance(each.event, MessagePosted)]
    assert texts == ["one 0", "two 0", "one 1", "two 1", "one 2", "two 2"]
    assert [each.row for each in events] == sorted({each.row for each in events})
    assert events[-1].row == await store.last_row()
    assert await store.events_after(events[-1].row) == []
    assert [each.row for each in await store.events_after(start, limit=2)] == [events[0].row, events[1].row]


async def test_reading_resumes_at_every_row_without_loss_and_without_repetition(store: Store) -> None:
    journal = await store.create(opened())
    for number in range(6):
        await journal.append(said(1, str(number)))
    whole = [each.row for each in await store.events_after(0)]
    for place, row in enumerate(whole, 1):
        assert [each.row for each in await store.events_after(row)] == whole[place:]


async def test_a_watch_notices_an_append(store: Store) -> None:
    journal = await store.create(opened())
    with store.watch() as watch:
        row = await store.last_row()
        await journal.append(said(1))
        async with asyncio.timeout(60):
            while not await store.events_after(row):
                await watch.changed()


async def test_a_watch_notices_what_another_process_records(home: Home) -> None:
    store = await SqliteStore.start(home, clock=SystemClock())
    try:
        journal = await store.create(opened())
        await journal.release()
        async with child("hold", home, journal.session) as process:
            assert process.stdout is not None
            assert (await process.stdout.readline()).strip() == b"held"
            row = await store.last_row()
            with store.watch() as watch:
                for number in range(20):
                    assert await order(process, f"message {number}") == "written"
                    async with asyncio.timeout(60):
                        while not (found := await store.events_after(row)):
                            await watch.changed()
                    assert len(found) == 1
                    row = found[0].row
    finally:
        await store.close()
