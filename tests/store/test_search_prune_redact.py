"""Search, deletion, pruning, redaction and file modes."""

import os
import sqlite3
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.sample_events import ended, opened, replied, said, turn

from holdfast.core import FakeClock, Ok, SessionId, digest_bytes
from holdfast.core.errors import InvalidInput, JournalDamaged, SessionNotFound
from holdfast.core.events import MessagePosted, Noted, RestorePointMade, SessionPinned, TurnEnded
from holdfast.store import Home, Redactor, Store, prune
from holdfast.store.entries import encode_entry
from holdfast.store.sqlite.store import SqliteStore

DAY_MS = 24 * 60 * 60 * 1000


def everything_at_rest(home: Home) -> bytes:
    return b"".join(path.read_bytes() for path in home.root.rglob("*") if path.is_file())


# -- search


async def test_search_finds_words_in_messages_and_replies(durable: Store) -> None:
    one = await durable.create(opened())
    await one.append(said(1, "Fix the failing test"), replied(1, "The café is Open"), ended(1))
    await one.append(said(2, "日本語 の テスト"))
    two = await durable.create(opened())
    await two.append(said(1, "another failing build"))
    found = await durable.search("FAIL")
    assert [(hit.session, hit.turn) for hit in found] == [(two.session, 1), (one.session, 1)]
    assert found[1].snippet == "Fix the failing test"
    assert found[1].pieces == ("Fix the ", "failing", " test")
    assert found[1].seq == 2
    assert [hit.session for hit in await durable.search("failing test")] == [one.session]
    assert [hit.turn for hit in await durable.search("cafe open")] == [1]
    assert [hit.turn for hit in await durable.search("日本")] == [2]
    assert await durable.search("nowhere") == []
    await two.append(said(2, "later words"))
    assert [hit.turn for hit in await durable.search("later")] == [2]
    assert len(await durable.search("failing", limit=1)) == 1


@pytest.mark.parametrize("text", ["", "  ", '"', "* - !", "((("])
async def test_a_query_without_words_is_refused(durable: Store, text: str) -> None:
    with pytest.raises(InvalidInput):
        await durable.search(text)


@pytest.mark.parametrize("text", ['a" OR "c', "NEAR(a b)", "a NOT c", "a AND b", "text:a", "a^2"])
async def test_query_syntax_is_escaped(durable: Store, text: str) -> None:
    journal = await durable.create(opened())
    await journal.append(said(1, "a b"))
    assert not await durable.search(text), "every word counts as a word, and not all of these were said"


@pytest.mark.parametrize("text", ["{a}", "a*b", "(b) a", 'a" "b'])
async def test_punctuation_in_a_query_is_ignored(durable: Store, text: str) -> None:
    journal = await durable.create(opened())
    await journal.append(said(1, "a b"))
    assert [hit.session for hit in await durable.search(text)] == [journal.session]


async def test_a_reply_that_is_also_the_outcome_is_found_once(durable: Store) -> None:
    journal = await durable.create(opened())
    for number in (1, 2):
        ending = TurnEnded(turn=number, outcome=Ok(value="it was the comma"))
        await journal.append(said(number), replied(number, "it was the comma"), ending)
    assert [hit.turn for hit in await durable.search("comma")] == [2, 1]


@pytest.mark.parametrize("damage", [None, b"", b"half a file", b"\0" * 40_000])
async def test_a_missing_or_damaged_search_index_is_rebuilt(
    home: Home, clock: FakeClock, damage: bytes | None
) -> None:
    store = await SqliteStore.start(home, clock=clock)
    journal = await store.create(opened())
    await journal.append(said(1, "needle"))
    assert len(await store.search("needle")) == 1
    if damage is None:
        home.search.unlink()
    else:
        home.search.write_bytes(damage)
    assert len(await store.search("needle")) == 1
    await store.close()


async def test_a_search_index_of_another_database_is_rebuilt(home: Home, clock: FakeClock) -> None:
    store = await SqliteStore.start(home, clock=clock)
    await (await store.create(opened())).append(said(1, "old"))
    assert len(await store.search("old")) == 1
    await store.close()
    home.database.unlink()
    store = await SqliteStore.start(home, clock=clock)
    await (await store.create(opened())).append(said(1, "new"))
    assert await store.search("old") == []
    assert len(await store.search("new")) == 1
    await store.close()


async def test_shared_events_of_a_deleted_session_are_found_in_a_fork(durable: Store) -> None:
    parent = await durable.create(opened())
    await parent.append(said(1, "needle"), said(2, "thread"))
    fork = await durable.fork(parent.session, at=2, opened=opened())
    second = await durable.fork(fork.session, at=2, opened=opened())
    assert [hit.session for hit in await durable.search("needle")] == [parent.session]
    for journal in (parent, fork):
        await journal.release()
        await durable.delete(journal.session)
    assert [(hit.session, hit.turn) for hit in await durable.search("needle")] == [(second.session, 1)]
    assert await durable.search("thread") == []


# -- deleting


async def test_deleted_text_is_in_no_file(home: Home, clock: FakeClock) -> None:
    store = await SqliteStore.start(home, clock=clock)
    inner, large = b"inner-canary", b"large-canary" * 200_000
    outer = f'["{digest_bytes(inner)}", "{digest_bytes(large)}"]'.encode()
    doomed = await store.create(opened())
    await doomed.append(
        said(1, "event-canary"),
        RestorePointMade(turn=1, manifest=digest_bytes(outer)),
        blobs=[outer, inner, large],
    )
    other = await store.create(opened())
    shared = b"shared-content"
    for journal in (doomed, other):
        await journal.append(RestorePointMade(turn=1, manifest=digest_bytes(shared)), blobs=[shared])
    assert len(await store.search("canary")) == 1
    (home.prepare_session(doomed.session) / "audit.jsonl").write_bytes(b"audit-canary")
    await doomed.release()
    await store.delete(doomed.session)
    assert await store.blob(digest_bytes(shared)) == shared
    await store.close()
    assert b"canary" not in everything_at_rest(home)


async def test_a_blob_that_was_just_stored_again_is_not_swept(durable: Store, clock: FakeClock) -> None:
    content = b"put twice"
    doomed = await durable.create(opened())
    await doomed.append(RestorePointMade(turn=1, manifest=digest_bytes(content)), blobs=[content])
    await durable.put_blob(content)  # by a caller whose event is not written yet
    await doomed.release()
    await durable.delete(doomed.session)
    assert await durable.blob(digest_bytes(content)) == content


async def test_pruning_sweeps_unreferenced_blobs(durable: Store, clock: FakeClock) -> None:
    old, mentioned, fresh = b"old", b"mentioned", b"fresh"
    for content in (old, mentioned):
        await durable.put_blob(content)
    journal = await durable.create(opened())
    await journal.append(RestorePointMade(turn=1, manifest=digest_bytes(mentioned)))
    clock.advance(2 * 60 * 60)
    await durable.put_blob(fresh)
    await prune(durable, now_ms=clock.now_ms(), keep=5)
    with pytest.raises(JournalDamaged):
        await durable.blob(digest_bytes(old))
    assert await durable.blob(digest_bytes(mentioned)) == mentioned
    assert await durable.blob(digest_bytes(fresh)) == fresh


class Sweeping(SqliteStore):
    """Counts how often all events are read."""

    sweeps = 0

    async def sweep_blobs(self, digests: frozenset[str]) -> int:
        self.sweeps += 1
        return await super().sweep_blobs(digests)


async def test_pruning_many_sessions_reads_the_remaining_events_once(home: Home, clock: FakeClock) -> None:
    store = await Sweeping.start(home, clock=clock)
    assert isinstance(store, Sweeping)
    contents = [f"of session {number}".encode() for number in range(5)]
    for content in contents:
        journal = await store.create(opened())
        await journal.append(RestorePointMade(turn=1, manifest=digest_bytes(content)), blobs=[content])
        await journal.release()
    await prune(store, now_ms=clock.now_ms(), keep=1)
    for gone in contents[:4]:
        with pytest.raises(JournalDamaged):
            await store.blob(digest_bytes(gone))
    assert await store.blob(digest_bytes(contents[4])) == contents[4]
    assert store.sweeps == 1
    await store.close()


async def test_pruning_removes_blob_files_without_a_row(
    disk: SqliteStore, home: Home, clock: FakeClock
) -> None:
    large = b"x" * 2_000_000
    known = await disk.put_blob(large)
    journal = await disk.create(opened())
    await journal.append(RestorePointMade(turn=1, manifest=known))
    stray, fresh = (home.blobs / letter[:2] / letter for letter in ("a" * 64, "b" * 64))
    for file, age in ((stray, 2 * 60 * 60), (fresh, 60)):
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"stray")
        os.utime(file, (clock.now_ms() / 1000 - age,) * 2)
    await prune(disk, now_ms=clock.now_ms(), keep=5)
    assert not stray.exists()
    assert fresh.exists(), "its owner may be about to write it down"
    assert await disk.blob(known) == large


async def test_half_written_files_are_removed_at_the_next_start(home: Home, clock: FakeClock) -> None:
    home.prepare()
    left = [
        home.blobs / ".abc-1",
        home.root / ".key-1",
        home.root / ".export-key-1",
        home.process_locks / ".1-abc",
    ]
    for path in left:
        path.write_bytes(b"half")
    store = await SqliteStore.start(home, clock=clock)
    assert [path for path in left if path.exists()] == []
    await store.close()


async def test_deleting_the_last_fork_deletes_the_shared_events(home: Home, clock: FakeClock) -> None:
    store = await SqliteStore.start(home, clock=clock)
    parent = await store.create(opened(), session=SessionId("parent"))
    await parent.append(said(1, "canary-1"), said(2, "canary-2"))
    first = await store.fork(parent.session, at=2, opened=opened())
    second = await store.fork(first.session, at=3, opened=opened())
    for journal in (parent, first):
        await journal.release()
        await store.delete(journal.session)
    assert [
        one.event.text for one in await store.read(second.session) if isinstance(one.event, MessagePosted)
    ] == ["canary-1"]
    await second.release()
    await store.delete(second.session)
    await store.create(opened(), session=SessionId("parent"))
    await store.close()
    assert b"canary" not in everything_at_rest(home)


# -- pruning


async def _aged(store: Store, clock: FakeClock, count: int) -> list[SessionId]:
    """Create sessions a day apart, oldest first, none of them open."""
    ids = []
    for _ in range(count):
        journal = await store.create(opened())
        await journal.release()
        ids.append(journal.session)
        clock.advance(24 * 60 * 60)
    return ids


async def listed(store: Store) -> list[SessionId]:
    return [line.id for line in await store.sessions()][::-1]


async def test_pruning_keeps_the_newest(durable: Store, clock: FakeClock) -> None:
    ids = await _aged(durable, clock, 4)
    report = await prune(durable, now_ms=clock.now_ms(), keep=2)
    assert {one.session for one in report.pruned} == set(ids[:2])
    assert report.kept == 2
    assert await listed(durable) == ids[2:]
    assert (await prune(durable, now_ms=clock.now_ms(), keep=5)).pruned == ()
    assert len((await prune(durable, now_ms=clock.now_ms(), keep=0)).pruned) == 2


async def test_pruning_by_age(durable: Store, clock: FakeClock) -> None:
    ids = await _aged(durable, clock, 4)
    report = await prune(durable, now_ms=clock.now_ms(), older_than_ms=int(2.5 * DAY_MS))
    assert {one.session for one in report.pruned} == set(ids[:2])
    both = await prune(durable, now_ms=clock.now_ms(), keep=2, older_than_ms=0)
    assert both.pruned == ()


async def test_a_dry_run_reports_the_same_and_deletes_nothing(durable: Store, clock: FakeClock) -> None:
    ids = await _aged(durable, clock, 3)
    dry = await prune(durable, now_ms=clock.now_ms(), keep=1, is_dry_run=True)
    assert await listed(durable) == ids
    real = await prune(durable, now_ms=clock.now_ms(), keep=1)
    assert (dry.pruned, dry.kept) == (real.pruned, real.kept)


async def test_live_pinned_and_named_sessions_are_spared_by_default(durable: Store, clock: FakeClock) -> None:
    live = await durable.create(opened())
    pinned = await durable.create(opened())
    await pinned.append(SessionPinned(is_pinned=True))
    named = await durable.create(opened(name="mine"))
    for journal in (pinned, named):
        await journal.release()
    clock.advance(1)
    report = await prune(durable, now_ms=clock.now_ms(), keep=0)
    assert {(one.session, one.why) for one in report.spared} == {
        (live.session, "live"),
        (pinned.session, "pinned"),
        (named.session, "named"),
    }
    report = await prune(durable, now_ms=clock.now_ms(), keep=0, named_too=True, pinned_too=True)
    assert await listed(durable) == [live.session]


@pytest.mark.parametrize(("keep", "older"), [(None, None), (-1, None), (None, -1)])
async def test_pruning_without_a_bound_is_refused(
    durable: Store, clock: FakeClock, keep: int | None, older: int | None
) -> None:
    await _aged(durable, clock, 2)
    with pytest.raises(InvalidInput):
        await prune(durable, now_ms=clock.now_ms(), keep=keep, older_than_ms=older)
    assert len(await listed(durable)) == 2


async def test_setting_the_clock_back_does_not_prune_the_newest_session(
    durable: Store, clock: FakeClock
) -> None:
    ids = await _aged(durable, clock, 3)
    clock.set_back(30 * 24 * 60 * 60)
    newest = await durable.create(opened())
    await newest.release()
    clock.advance(30 * 24 * 60 * 60)
    report = await prune(durable, now_ms=clock.now_ms(), older_than_ms=int(1.5 * DAY_MS))
    assert {one.session for one in report.pruned} == set(ids[:2])
    await prune(durable, now_ms=clock.now_ms(), keep=1)
    assert await listed(durable) == [newest.session]


async def test_a_pruned_session_leaves_a_tombstone(home: Home, clock: FakeClock) -> None:
    store = await SqliteStore.start(home, clock=clock)
    (id,) = await _aged(store, clock, 1)
    await prune(store, now_ms=clock.now_ms(), keep=0)
    with pytest.raises(SessionNotFound):
        await store.open(id)
    await store.close()
    connection = sqlite3.connect(home.database)
    assert connection.execute("SELECT session, reason, events FROM tombstone").fetchall() == [
        (id, "pruned", 1)
    ]
    connection.close()


# -- secrets and modes


SECRETS = ["sk-canary-123456", 'quo"ted\\canary', "line\ncanary", "ünïcanary"]


@pytest.mark.parametrize("secret", SECRETS)
async def test_a_known_secret_is_in_no_file(home: Home, clock: FakeClock, secret: str) -> None:
    redactor = Redactor()
    store = await SqliteStore.start(home, clock=clock, redact=redactor)
    redactor.add(secret)
    journal = await store.create(opened(name="named"))
    inside = f'a tool said {{"key": "{secret}"}}'
    await journal.append(said(1, f"before {secret} after"), Noted(code="n", text=inside))
    first = journal.recorded[1].event
    assert isinstance(first, MessagePosted)
    assert first.text == "before [redacted] after"
    assert await store.search("before")
    await journal.release()
    assert (await store.open(journal.session)).recorded[1].event == first
    await store.close()
    at_rest = everything_at_rest(home)
    assert b"canary" not in at_rest
    assert secret.encode() not in at_rest


@given(secret=st.text(min_size=4, max_size=20), around=st.text(max_size=10))
def test_recorded_events_do_not_contain_the_secret(secret: str, around: str) -> None:
    try:
        entry = encode_entry(said(1, around + secret + around), Redactor(secret))
    except InvalidInput:
        return  # a word of the format itself: the event is refused
    assert isinstance(entry.event, MessagePosted)
    assert secret not in entry.event.text.replace("[redacted]", "\0")


async def test_an_event_whose_format_contains_the_secret_is_refused(home: Home, clock: FakeClock) -> None:
    store = await SqliteStore.start(home, clock=clock, redact=Redactor("message-posted"))
    journal = await store.create(opened())
    with pytest.raises(InvalidInput):
        await journal.append(said(1))
    await store.close()


def test_a_secret_that_is_too_short_is_refused() -> None:
    with pytest.raises(InvalidInput):
        Redactor("abc")


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
async def test_files_are_private_whatever_the_umask(tmp_path: Path, clock: FakeClock, umask: int) -> None:
    home = Home(tmp_path / "home")
    before = os.umask(umask)
    try:
        store = await SqliteStore.start(home, clock=clock)
        journal = await store.create(opened())
        await journal.append(*turn(1), blobs=[b"small", b"large" * 400_000])
        await store.search("hello")
        home.key()
        home.prepare_session(journal.session)
        modes = {path: path.stat().st_mode & 0o777 for path in [home.root, *home.root.rglob("*")]}
        await store.close()
    finally:
        os.umask(before)
    for path, mode in modes.items():
        assert mode == (0o700 if path.is_dir() else 0o600), path


async def test_a_closed_store_leaves_no_thread_and_no_process_lock(home: Home, clock: FakeClock) -> None:
    before = set(threading.enumerate())
    store = await SqliteStore.start(home, clock=clock)
    await store.create(opened())
    await store.close()
    assert set(threading.enumerate()) <= before
    assert list(home.process_locks.iterdir()) == []


def test_the_key_is_created_once(home: Home) -> None:
    assert len(home.key()) == 32
    assert home.key() == Home(home.root).key()
