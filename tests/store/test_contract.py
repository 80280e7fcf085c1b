"""The contract of a store, tested over every backend."""

import asyncio
import hashlib
import re
from decimal import Decimal
from pathlib import Path

import pytest
from tests.store.sample_events import asked, ended, opened, replied, said, turn

from holdfast.core import PERSON, FakeClock, SessionId, digest_bytes
from holdfast.core.decisions import Response
from holdfast.core.errors import (
    InvalidId,
    InvalidInput,
    InvalidName,
    JournalDamaged,
    LeaseLost,
    SessionAmbiguous,
    SessionExists,
    SessionHeld,
    SessionNotFound,
    StoreError,
)
from holdfast.core.events import (
    GENESIS,
    EscalationAnswered,
    EscalationExpired,
    MessagePosted,
    Noted,
    RecordedEvent,
    SessionClosed,
    SessionPaused,
    SessionPinned,
    SessionReconfigured,
    SessionRenamed,
    SessionRewound,
    encode_event,
    event_hash,
)
from holdfast.core.ids import EscalationId
from holdfast.core.projection import Projection
from holdfast.store import Journal, Store


def texts(journal: Journal) -> list[str]:
    return [one.event.text for one in journal.recorded if isinstance(one.event, MessagePosted)]


async def test_a_new_session_gets_an_id_of_the_time_and_four_letters(store: Store) -> None:
    journal = await store.create(opened())
    assert re.fullmatch(r"2026-01-01-00-00-00-000-[a-z0-9]{4}", journal.session)


async def test_a_given_id_can_be_created_once(store: Store) -> None:
    id = SessionId("550e8400-e29b-41d4-a716-446655440000")
    journal = await store.create(opened(), session=id)
    assert journal.session == id
    with pytest.raises(SessionExists):
        await store.create(opened(), session=id)
    await journal.release()
    with pytest.raises(SessionExists):
        await store.create(opened(), session=id)


@pytest.mark.parametrize("bad", ["", ".", "..", "a/b", "a\0b", "index", "CON", "x" * 129])
async def test_an_invalid_id_is_refused_everywhere(store: Store, bad: str) -> None:
    id = SessionId(bad)
    for attempt in (
        store.create(opened(), session=id),
        store.open(id),
        store.fork(id, at=1, opened=opened()),
        store.read(id),
        store.holder(id),
        store.summary(id),
        store.delete(id),
    ):
        with pytest.raises(InvalidId):
            await attempt


async def test_an_unknown_session_is_not_found(store: Store) -> None:
    id = SessionId("nobody")
    for attempt in (
        store.open(id),
        store.fork(id, at=1, opened=opened()),
        store.read(id),
        store.holder(id),
        store.summary(id),
        store.delete(id),
        store.find("nobody"),
        store.find(""),
    ):
        with pytest.raises(SessionNotFound):
            await attempt


async def test_events_are_read_in_order_with_linked_hashes(store: Store, clock: FakeClock) -> None:
    journal = await store.create(opened())
    await journal.append(said(1), replied(1))
    clock.set_back(3600)
    await journal.append(ended(1))
    recorded = await store.read(journal.session)
    assert [one.seq for one in recorded] == [1, 2, 3, 4]
    assert [one.event for one in recorded[1:]] == list(turn(1))
    previous = GENESIS
    for one in recorded:
        assert one.previous == previous
        assert one.hash == event_hash(previous, journal.session, one.seq, one.at_ms, encode_event(one.event))
        previous = one.hash
    assert list(journal.recorded) == list(recorded)
    assert [one.seq for one in await store.read(journal.session, after=3)] == [4]
    assert await store.read(journal.session, after=4) == []


async def test_a_reopened_session_continues_its_journal(store: Store) -> None:
    first = await store.create(opened())
    await first.append(*turn(1, "one"))
    await first.release()
    again = await store.open(first.session)
    await again.append(*turn(2, "two"))
    assert again.session == first.session
    assert texts(again) == ["one", "two"]
    assert [line.id for line in await store.sessions()] == [first.session]


async def test_appends_that_are_not_awaited_are_committed_in_call_order(store: Store) -> None:
    journal = await store.create(opened())
    waiting = [journal.append(said(n, str(n))) for n in range(1, 50)]
    await journal.append(said(50, "50"))
    assert texts(journal) == [str(n) for n in range(1, 51)]
    assert len(waiting) == 49


async def test_a_cancelled_append_is_recorded_once(store: Store) -> None:
    journal = await store.create(opened())
    task = asyncio.create_task(journal.append(said(1, "kept")))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await journal.append(said(2, "next"))
    assert texts(journal) == ["kept", "next"]
    assert len(await store.read(journal.session)) == 3


async def test_a_cancelled_open_holds_no_lease(store: Store) -> None:
    created = await store.create(opened())
    await created.release()
    session = created.session
    task = asyncio.create_task(store.open(session))
    await asyncio.sleep(0)
    task.cancel()
    (journal,) = await asyncio.gather(task, return_exceptions=True)
    if isinstance(journal, asyncio.CancelledError):
        journal = await store.open(session)
    assert not isinstance(journal, BaseException)
    await journal.append(said(1))
    vain = asyncio.create_task(store.open(session))
    await asyncio.sleep(0)
    vain.cancel()
    await asyncio.gather(vain, return_exceptions=True)
    assert await store.holder(session) is not None


async def test_an_event_changed_after_the_call_is_recorded_unchanged(store: Store) -> None:
    journal = await store.create(opened())
    event = asked(1)
    writing = journal.append(event)
    event.escalation.call.arguments["path"] = "b.txt"
    await writing
    (recorded,) = await store.read(journal.session, after=1)
    assert recorded.event == asked(1)
    assert journal.recorded[-1].event == asked(1)


async def test_a_follower_gets_every_event_once_and_in_order(store: Store) -> None:
    journal = await store.create(opened())
    await journal.append(said(1))
    heard: list[RecordedEvent] = []
    journal.follow(heard.append)
    assert [one.seq for one in heard] == [1, 2]
    await asyncio.gather(*(journal.append(said(n)) for n in range(2, 10)))
    assert heard == list(journal.recorded)
    assert [one.seq for one in heard] == list(range(1, 11))


class _Said(Projection[MessagePosted]):
    """The texts that are in effect."""

    def reset(self) -> None:
        self.turns: list[int] = []

    def apply(self, event: MessagePosted, entry: RecordedEvent) -> None:
        self.turns.append(event.turn)


async def test_a_projection_gets_the_events_it_handles_and_every_rewind(store: Store) -> None:
    journal = await store.create(opened())
    early = _Said(journal)
    await journal.append(said(1), ended(1))
    await journal.append(said(2), ended(2))
    late = _Said(journal)
    assert early.turns == late.turns == [1, 2]
    await journal.append(SessionRewound(seq=3, turn=1, principal=PERSON))
    assert early.turns == late.turns == [1]
    await journal.append(said(2))
    assert early.turns == late.turns == _Said(journal).turns == [1, 2]


async def test_a_follower_that_raises_neither_stops_the_others_nor_the_append(store: Store) -> None:
    journal = await store.create(opened())
    problems: list[dict[str, object]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
    heard: list[int] = []

    def broken(recorded: RecordedEvent) -> None:
        if recorded.seq > 1:
            raise ValueError("broken")

    journal.follow(broken)
    journal.follow(lambda one: heard.append(one.seq))
    await journal.append(said(1))
    assert heard == [1, 2]
    assert len(problems) == 1


async def test_a_second_writer_is_refused_and_learns_the_holder(store: Store, clock: FakeClock) -> None:
    journal = await store.create(opened())
    with pytest.raises(SessionHeld):
        await store.open(journal.session)
    holder = await store.holder(journal.session)
    assert holder is not None
    assert holder.since_ms == clock.now_ms()
    await journal.release()
    await journal.release()
    assert await store.holder(journal.session) is None
    await store.open(journal.session)


async def test_of_several_openings_at_once_one_gets_the_lease(store: Store) -> None:
    created = await store.create(opened())
    await created.release()
    for round_number in range(5):
        results = await asyncio.gather(
            *(store.open(created.session) for _ in range(4)), return_exceptions=True
        )
        holders = [each for each in results if not isinstance(each, BaseException)]
        assert len(holders) == 1
        assert {type(each) for each in results if isinstance(each, BaseException)} == {SessionHeld}
        await holders[0].append(said(round_number + 1))
        await holders[0].release()


async def test_a_released_journal_refuses_appends(store: Store) -> None:
    journal = await store.create(opened())
    await journal.release()
    with pytest.raises(LeaseLost):
        await journal.append(said(1))
    again = await store.open(journal.session)
    with pytest.raises(LeaseLost):
        await journal.append(said(1))
    assert len(again.recorded) == 1


async def test_a_fork_has_the_history_up_to_its_point_and_its_own_afterwards(store: Store) -> None:
    parent = await store.create(opened(name="trunk"))
    await parent.append(*turn(1, "one"))
    await parent.append(*turn(2, "two"))
    fork = await store.fork(parent.session, at=4, opened=opened(name="branch"))
    await fork.append(*turn(2, "other"))
    await parent.append(*turn(3, "three"))
    assert texts(fork) == ["one", "other"]
    assert texts(parent) == ["one", "two", "three"]
    recorded = await store.read(fork.session)
    assert list(recorded) == list(fork.recorded)
    assert [one.seq for one in recorded] == list(range(1, 9))
    assert [one.session for one in recorded] == [parent.session] * 4 + [fork.session] * 4
    assert recorded[4].previous == recorded[3].hash
    summary = await store.summary(fork.session)
    assert summary.parent is not None
    assert (summary.parent.session, summary.parent.seq) == (parent.session, 4)
    assert (summary.turns, summary.name) == (2, "branch")
    await fork.release()
    assert texts(await store.open(fork.session)) == ["one", "other"]


async def test_a_fork_of_a_fork_has_the_history_of_both(store: Store) -> None:
    first = await store.create(opened())
    await first.append(said(1, "one"))
    second = await store.fork(first.session, at=2, opened=opened())
    await second.append(said(2, "two"))
    third = await store.fork(second.session, at=4, opened=opened())
    early = await store.fork(third.session, at=1, opened=opened())
    assert texts(third) == ["one", "two"]
    assert texts(early) == []
    assert [one.seq for one in await store.read(third.session, after=1)] == [2, 3, 4, 5]


@pytest.mark.parametrize("at", [-1, 0, 3])
async def test_a_fork_at_a_missing_event_is_refused(store: Store, at: int) -> None:
    journal = await store.create(opened())
    await journal.append(said(1))
    with pytest.raises(InvalidInput):
        await store.fork(journal.session, at=at, opened=opened())


async def test_a_fork_outlives_its_parent(store: Store) -> None:
    parent = await store.create(opened(), session=SessionId("parent"))
    await parent.append(*turn(1, "one"))
    fork = await store.fork(parent.session, at=2, opened=opened())
    await parent.release()
    await store.delete(parent.session)
    with pytest.raises(SessionNotFound):
        await store.read(parent.session)
    assert [line.id for line in await store.sessions()] == [fork.session]
    await fork.release()
    assert texts(await store.open(fork.session)) == ["one"]


async def test_a_blob_is_read_by_its_digest(store: Store) -> None:
    large = bytes(range(256)) * 8192
    journal = await store.create(opened())
    await journal.append(Noted(code="n", text="n"), blobs=[b"small", large])
    assert await store.put_blob(b"alone") == digest_bytes(b"alone")
    assert await store.put_blob(b"alone") == digest_bytes(b"alone")
    for content in (b"small", large, b"alone"):
        assert await store.blob(digest_bytes(content)) == content
    with pytest.raises(JournalDamaged):
        await store.blob(digest_bytes(b"never"))


async def test_many_blobs_are_stored_from_files_and_copied_to_files(store: Store, tmp_path: Path) -> None:
    sizes = [0, 1, 9000, 9000, 3_000_000, 2_000_000, 70_000]
    contents = [bytes([number]) * size for number, size in enumerate(sizes)]
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"".join(contents))
    whole = hashlib.sha256()
    with source.open("rb") as file:
        for _ in range(2):  # the second time everything is stored already
            async with store.ingest() as intake:
                starts = [sum(sizes[:number]) for number in range(len(sizes))]
                parts = zip(starts, sizes, strict=True)
                kept = [intake.take(file.fileno(), start, size, whole=whole) for start, size in parts]
                beyond = intake.take(file.fileno(), sum(sizes) - 1, 10)
            assert [one.digest for one in kept] == [digest_bytes(content) for content in contents]
            assert [one.size for one in kept] == sizes
            assert beyond.size == 1, "a part has what there is of it"
    assert whole.hexdigest() == digest_bytes(source.read_bytes() * 2)
    found = await store.open_blobs([one.digest for one in kept])
    with target.open("wb") as file:
        place = 0
        for one in kept:
            place += found[one.digest].copy_to(file.fileno(), place)
    assert target.read_bytes() == source.read_bytes()
    for one, content in zip(kept, contents, strict=True):
        assert await store.blob(one.digest) == content
    with pytest.raises(JournalDamaged):
        await store.open_blobs([digest_bytes(b"never")])


async def test_an_ingest_that_fails_stores_nothing(store: Store, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"x" * 5_000_000)

    async def failing() -> None:
        with source.open("rb") as file:
            async with store.ingest() as intake:
                intake.take(file.fileno(), 0, 5_000_000)
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await failing()
    with pytest.raises(JournalDamaged):
        await store.blob(digest_bytes(source.read_bytes()))
    home = tmp_path / "home" / "blobs"
    assert not home.exists() or list(home.iterdir()) == []


async def test_the_list_is_by_activity_and_not_by_the_clock(store: Store, clock: FakeClock) -> None:
    ids = []
    for n in range(3):
        ids.append((await store.create(opened(folder=f"/{n % 2}"))).session)
        clock.set_back(3600)
    assert [line.id for line in await store.sessions()] == ids[::-1]
    assert [line.id for line in await store.sessions(limit=2)] == ids[:0:-1]
    assert await store.sessions(limit=0) == []
    assert [line.id for line in await store.sessions(folder="/0", limit=1)] == [ids[2]]


async def test_naming_and_pinning_are_not_activity(store: Store) -> None:
    old = await store.create(opened())
    new = await store.create(opened())
    await old.append(SessionPinned(is_pinned=True), SessionRenamed(name="old"))
    assert [line.id for line in await store.sessions()] == [new.session, old.session]
    await old.append(said(1))
    assert [line.id for line in await store.sessions()] == [old.session, new.session]


async def test_a_summary_shows_the_progress_of_a_session(store: Store, clock: FakeClock) -> None:
    journal = await store.create(opened(name="My Session"))
    born = clock.now_ms()
    clock.advance(60)
    await journal.append(*turn(1, "x" * 300))
    await journal.append(SessionReconfigured(model="other"), SessionPinned(is_pinned=True))
    summary = await store.summary(journal.session)
    assert summary.name == "my-session"
    assert (summary.created_ms, summary.active_ms) == (born, born + 60_000)
    assert (summary.turns, summary.messages, summary.first_words) == (1, 2, "x" * 200)
    assert (summary.tokens, summary.cost_usd) == (15, Decimal("0.25"))
    assert (summary.model, summary.policy, summary.folder) == ("other", "ask-always", "/project")
    assert (summary.lifecycle, summary.activity, summary.is_pinned) == ("open", "ready", True)
    assert summary.events == 6
    assert list(await store.sessions()) == [summary]


async def test_an_unknown_price_makes_the_cost_unknown(store: Store) -> None:
    journal = await store.create(opened())
    await journal.append(replied(1, cost=None), replied(2))
    assert (await store.summary(journal.session)).cost_usd is None


async def test_the_activity_follows_the_turn(store: Store, clock: FakeClock) -> None:
    journal = await store.create(opened())

    async def state() -> tuple[str, int | None]:
        summary = await store.summary(journal.session)
        return summary.activity, summary.waiting_since_ms

    await journal.append(said(1))
    assert await state() == ("processing", None)
    since = clock.now_ms()
    await journal.append(asked(1, "e1"))
    clock.advance(5)
    await journal.append(asked(1, "e2"))
    assert await state() == ("waiting", since)
    yes = Response(verdict="approve")
    await journal.append(
        EscalationAnswered(escalation=EscalationId("e1"), response=yes, principal=PERSON, transport="t")
    )
    assert await state() == ("waiting", since + 5000)
    await journal.append(EscalationExpired(escalation=EscalationId("e2"), reason="late"))
    assert await state() == ("processing", None)
    await journal.append(ended(1))
    assert await state() == ("ready", None)
    await journal.append(SessionPaused())
    assert (await store.summary(journal.session)).lifecycle == "paused"
    await journal.append(SessionClosed(how="aborted"))
    assert (await store.summary(journal.session)).lifecycle == "aborted"


async def test_a_rewind_keeps_the_events_and_undoes_their_effect(store: Store) -> None:
    journal = await store.create(opened())
    await journal.append(*turn(1, "one"))
    await journal.append(*turn(2, "two"), SessionRenamed(name="kept"))
    await journal.append(said(3))
    await journal.append(SessionRewound(seq=4, turn=1, principal=PERSON))
    summary = await store.summary(journal.session)
    assert (summary.turns, summary.tokens, summary.activity) == (1, 15, "ready")
    assert (summary.name, summary.events) == ("kept", 10)
    assert len(await store.read(journal.session)) == 10
    await journal.append(*turn(2, "again"))
    assert (await store.summary(journal.session)).turns == 2


async def test_a_session_is_found_by_id_name_or_prefix(store: Store) -> None:
    one = await store.create(opened(name="My Session!"), session=SessionId("abc-1"))
    two = await store.create(opened(), session=SessionId("abc-2"))
    assert await store.find("abc-1") == one.session
    assert await store.find("my-session") == one.session
    assert await store.find("My Session!") == one.session
    assert await store.find("abc-2") == two.session
    with pytest.raises(SessionAmbiguous):
        await store.find("abc")
    await store.create(opened(), session=SessionId("abc"))
    assert await store.find("abc") == "abc"


async def test_a_session_is_found_by_the_random_end_of_its_id(store: Store) -> None:
    one = await store.create(opened(), session=SessionId("2026-11-17-15-00-00-000-npi1"))
    await store.create(opened(), session=SessionId("2026-11-17-15-00-00-001-aaaa"))
    assert await store.find("npi1") == one.session
    for missing in ("pi1", "1-npi1", "*pi1", "npi?"):
        with pytest.raises((SessionNotFound, InvalidId)):
            await store.find(missing)
    await store.create(opened(), session=SessionId("2026-11-17-15-00-00-002-npi1"))
    with pytest.raises(SessionAmbiguous):
        await store.find("npi1")


async def test_a_name_belongs_to_one_session(store: Store) -> None:
    one = await store.create(opened(name="My Session"))
    two = await store.create(opened())
    with pytest.raises(SessionExists):
        await store.create(opened(name="my-session"))
    with pytest.raises(SessionExists):
        await two.append(said(1), SessionRenamed(name="MY SESSION"))
    assert len(two.recorded) == 1
    with pytest.raises(SessionExists):
        await two.append(SessionRenamed(name=one.session))
    await one.append(SessionRenamed(name=None))
    await two.append(SessionRenamed(name="MY SESSION"))
    assert await store.find("my-session") == two.session
    with pytest.raises(InvalidName):
        await two.append(SessionRenamed(name="../etc"))
    await two.append(said(1))
    assert [one.seq for one in two.recorded] == [1, 2, 3]


async def test_a_deleted_session_is_gone_and_its_id_and_name_are_free(store: Store) -> None:
    journal = await store.create(opened(name="gone"), session=SessionId("gone-1"))
    with pytest.raises(SessionHeld):
        await store.delete(journal.session)
    await journal.release()
    await store.delete(journal.session)
    with pytest.raises(SessionNotFound):
        await store.delete(journal.session)
    assert await store.sessions() == []
    with pytest.raises(LeaseLost):
        await journal.append(said(1))
    await store.create(opened(name="gone"), session=SessionId("gone-1"))


async def test_fifty_concurrent_creates_make_fifty_sessions(store: Store) -> None:
    journals = await asyncio.gather(*(store.create(opened()) for _ in range(50)))
    await asyncio.gather(*(journal.append(*turn(1, journal.session)) for journal in journals))
    lines = await store.sessions()
    assert {line.id for line in lines} == {journal.session for journal in journals}
    assert all(line.first_words == line.id for line in lines)


async def test_a_thousand_messages_in_any_script_are_read_back_unchanged(store: Store) -> None:
    journal = await store.create(opened())
    words = [f'{n} "quoted" <tag> 日本語 \U0001f600 \u0007 \\n' for n in range(1000)]
    await journal.append(*(said(n, word) for n, word in enumerate(words)))
    await journal.release()
    assert texts(await store.open(journal.session)) == words


async def test_closing_is_idempotent(store: Store) -> None:
    journal = await store.create(opened())
    await store.close()
    await store.close()
    with pytest.raises(StoreError):
        await journal.append(said(1))


async def test_search_finds_all_words_or_their_beginnings_newest_first(
    store: Store, clock: FakeClock
) -> None:
    first = await store.create(opened(), session=SessionId("first"))
    await first.append(said(1, "the parser fails on Größe"))
    clock.advance(1)
    second = await store.create(opened(), session=SessionId("second"))
    await second.append(said(1, "a parser that works"), said(2, "something else"))
    assert [(hit.session, hit.turn) for hit in await store.search("PARS")] == [("second", 1), ("first", 1)]
    assert [hit.session for hit in await store.search("parser grosse")] == []
    assert [hit.session for hit in await store.search("parser Größ")] == ["first"]
    assert [hit.session for hit in await store.search("parser", limit=1)] == ["second"]
    assert "parser" in (await store.search("works"))[0].snippet
    with pytest.raises(InvalidInput):
        await store.search("?!")


async def test_deleting_a_session_deletes_the_blobs_that_only_it_refers_to(store: Store) -> None:
    shared, own = await store.put_blob(b"shared"), await store.put_blob(b"own")
    for name, digests in (("keeps", [shared]), ("goes", [shared, own])):
        journal = await store.create(opened(), session=SessionId(name))
        await journal.append(*(Noted(code="blob", text=digest) for digest in digests))
        await journal.release()
    await store.delete(SessionId("goes"))
    assert await store.blob(shared) == b"shared"
    with pytest.raises(JournalDamaged):
        await store.blob(own)


async def test_removed_sessions_leave_their_blobs_to_one_sweep(store: Store) -> None:
    digest = await store.put_blob(b"own")
    journal = await store.create(opened())
    await journal.append(Noted(code="blob", text=digest))
    await journal.release()
    removed = await store.remove(journal.session, reason="pruned")
    assert removed == {digest}
    assert await store.blob(digest) == b"own"
    assert await store.sweep(removed) == 1


async def test_intact_journals_are_verified_and_the_index_is_rebuilt(store: Store) -> None:
    parent = await store.create(opened(), session=SessionId("parent"))
    await parent.append(*turn(1))
    fork = await store.fork(parent.session, at=2, opened=opened())
    found = await store.verify(fork.session)
    assert (found.is_intact, found.events) == (True, 3)
    assert found.last_hash == fork.recorded[-1].hash.hex()
    assert {one.session for one in await store.verify_all()} == {parent.session, fork.session}
    before = await store.sessions()
    assert await store.rebuild_index() == 2
    assert await store.sessions() == before
    with pytest.raises(SessionNotFound):
        await store.verify(SessionId("missing"))


async def test_an_exported_session_can_be_imported_once_it_is_deleted(store: Store, tmp_path: Path) -> None:
    parent = await store.create(opened(), session=SessionId("parent"))
    await parent.append(said(1, "hello"))
    fork = await store.fork(parent.session, at=2, opened=opened(name="forked"))
    digest = await store.put_blob(b"content")
    await fork.append(Noted(code="blob", text=digest))
    before = list(fork.recorded)
    await fork.release()
    manifest = await store.export_session(fork.session, tmp_path / "fork.zip", now_ms=0)
    assert (manifest.name, manifest.events, manifest.lost) == ("forked", len(before), ())
    with pytest.raises(InvalidInput):
        await store.export_session(fork.session, tmp_path / "fork.zip", now_ms=0)
    with pytest.raises(SessionExists):
        await store.import_session(tmp_path / "fork.zip", now_ms=0)
    await store.delete(fork.session)
    assert await store.import_session(tmp_path / "fork.zip", now_ms=0) == fork.session
    after = await store.read(fork.session)
    assert list(after[: len(before)]) == before
    noted = [each.event for each in after[len(before) :] if isinstance(each.event, Noted)]
    assert [each.code for each in noted] == ["imported"]
    assert (await store.summary(fork.session)).name == "forked"
    assert await store.blob(digest) == b"content"
    assert (await store.verify(fork.session)).is_intact


async def test_a_new_store_has_no_notices(store: Store) -> None:
    assert store.notices == ()
