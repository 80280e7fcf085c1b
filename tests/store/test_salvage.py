"""Damaged files: derived data is rebuilt, and what can be read of the journals is saved and reported."""

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from tests.store.sample_events import opened, said, turn

from holdfast.core import FakeClock, SessionId, digest_bytes
from holdfast.core.errors import JournalDamaged, SessionNotFound, StoreUnavailable
from holdfast.core.events import MessagePosted, Noted
from holdfast.store import Home, JournalProblem
from holdfast.store.recovery.inspect import inspect
from holdfast.store.sqlite.database import connect
from holdfast.store.sqlite.store import SqliteStore

Result = TypeVar("Result")
LONG = "long " * 3000  # needs overflow pages


async def fill(home: Home, clock: FakeClock, *, sessions: int = 20) -> dict[SessionId, list[str]]:
    """Create sessions with these texts, and close the store."""
    store = await SqliteStore.start(home, clock=clock)
    written: dict[SessionId, list[str]] = {}
    for n in range(sessions):
        journal = await store.create(opened(name=f"name-{n}"))
        written[journal.session] = [f"{n} first", LONG, f"{n} last"]
        for place, text in enumerate(written[journal.session], start=1):
            await journal.append(said(place, text))
    await store.close()
    return written


async def texts(store: SqliteStore, session: SessionId) -> list[str]:
    recorded = await store.read(session)
    return [one.event.text for one in recorded if isinstance(one.event, MessagePosted)]


def statement(home: Home, sql: str) -> None:
    """Change the database with another program."""
    connection = sqlite3.connect(home.database)
    connection.execute(sql)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM session",
        "DROP TABLE session",
        "UPDATE session SET tally = 'no json'",
        "UPDATE session SET tally = '{}'",
        "UPDATE session SET tally = 'null'",
    ],
)
async def test_a_missing_or_wrong_session_list_is_rebuilt(home: Home, clock: FakeClock, damage: str) -> None:
    store = await SqliteStore.start(home, clock=clock)
    first = await store.create(opened(name="first"))
    second = await store.fork(first.session, at=1, opened=opened(name="second"))
    await first.append(*turn(1))
    before = await store.sessions()
    await store.close()
    statement(home, damage)
    store = await SqliteStore.start(home, clock=clock)
    assert await store.sessions() == before
    assert await store.find("second") == second.session
    assert len(store.notices) == 1
    await store.close()


@pytest.mark.parametrize("part", ["INDEX event_place", "INDEX session_rank", "TABLE lease"])
async def test_a_dropped_derived_table_is_recreated(home: Home, clock: FakeClock, part: str) -> None:
    written = await fill(home, clock, sessions=2)
    statement(home, f"DROP {part}")
    store = await SqliteStore.start(home, clock=clock)
    for session, expected in written.items():
        assert await texts(store, session) == expected
        await (await store.open(session)).release()
    await store.close()


@pytest.mark.parametrize("table", ["event", "blob", "tombstone"])
async def test_a_dropped_primary_table_is_reported_and_not_recreated(
    home: Home, clock: FakeClock, table: str
) -> None:
    await fill(home, clock, sessions=1)
    statement(home, f"DROP TABLE {table}")
    with pytest.raises(StoreUnavailable, match=f"lacks the tables {table}"):
        await SqliteStore.start(home, clock=clock)


@pytest.mark.parametrize("value", ["'no json'", "7", "x'00'"])
async def test_a_wrong_summary_is_fixed_when_it_is_read(home: Home, clock: FakeClock, value: str) -> None:
    store = await SqliteStore.start(home, clock=clock)
    first = await store.create(opened(name="first"))
    await store.create(opened(name="second"))
    before = await store.sessions()
    await store.close()
    statement(home, f"UPDATE session SET tally = {value} WHERE id = '{first.session}'")
    store = await SqliteStore.start(home, clock=clock)
    assert await store.sessions() == before
    assert len(store.notices) == 1
    await store.close()


async def test_rebuilding_an_intact_index_changes_nothing(disk: SqliteStore) -> None:
    parent = await disk.create(opened(name="a"))
    await parent.append(*turn(1))
    await disk.fork(parent.session, at=2, opened=opened(name="b"))
    await disk.create(opened())
    await parent.release()
    await disk.delete(parent.session)
    before = await disk.sessions()
    assert await disk.rebuild_index() == 2
    assert await disk.sessions() == before


@pytest.mark.parametrize(
    ("tampering", "seq", "what"),
    [
        ("UPDATE event SET body = replace(body, 'hello', 'HELLO') WHERE seq = 2", 2, "changed"),
        ("UPDATE event SET at_ms = at_ms + 1 WHERE seq = 3", 3, "changed"),
        ("DELETE FROM event WHERE seq = 2", 2, "missing"),
        ("DELETE FROM event WHERE seq = 4", 4, "missing"),
        ("DELETE FROM event WHERE seq = 1", 1, "missing"),
        ("UPDATE event SET seq = CASE seq WHEN 2 THEN -3 ELSE -2 END WHERE seq IN (2, 3)", 2, "missing"),
        ("UPDATE event SET body = x'00' WHERE seq = 4", 4, "unreadable"),
        ("UPDATE event SET session = 'other' WHERE seq = 3", 3, "missing"),
        ("UPDATE event SET at_ms = at_ms + 0.5 WHERE seq = 3", 3, "changed"),
        ("UPDATE event SET at_ms = 9e999 WHERE seq = 3", 3, "changed"),
        ("UPDATE event SET hash = CAST(hash AS TEXT) WHERE seq = 3", 3, "changed"),
        ("UPDATE event SET body = CAST(body AS TEXT) WHERE seq = 3", 3, "changed"),
        ("UPDATE event SET seq = 3.5 WHERE seq = 3", 3, "changed"),
        ("UPDATE event SET seq = 6 WHERE seq = 4", 4, "missing"),
    ],
)
async def test_changed_removed_and_moved_events_are_detected(
    home: Home, clock: FakeClock, tampering: str, seq: int, what: str
) -> None:
    store = await SqliteStore.start(home, clock=clock)
    journal = await store.create(opened())
    await journal.append(*turn(1))
    assert (await store.verify(journal.session)).is_intact
    await store.close()
    statement(home, tampering)
    store = await SqliteStore.start(home, clock=clock)
    found = await store.verify(journal.session)
    assert (seq, what) in [(problem.seq, problem.what) for problem in found.problems]
    with pytest.raises(JournalDamaged, match=f"event {seq} "):
        await store.open(journal.session)
    assert (await store.summary(journal.session)).is_damaged
    assert await store.holder(journal.session) is None
    await store.close()


@pytest.mark.parametrize("seq", [63, 64, 65, 128, 129])
@pytest.mark.parametrize("tampering", ["UPDATE event SET at_ms = at_ms + 1", "DELETE FROM event"])
async def test_the_damaged_event_is_named_at_any_position(
    home: Home, clock: FakeClock, tampering: str, seq: int
) -> None:
    store = await SqliteStore.start(home, clock=clock)
    journal = await store.create(opened())
    await journal.append(*(said(turn, "hello") for turn in range(1, 129)))
    await store.close()
    statement(home, f"{tampering} WHERE seq = {seq}")
    store = await SqliteStore.start(home, clock=clock)
    with pytest.raises(JournalDamaged, match=f"event {seq} "):
        await store.read(journal.session)
    found = await store.verify(journal.session)
    assert [problem.seq for problem in found.problems] == [seq]
    await store.close()


@pytest.mark.parametrize("place", ["0", "2", "'behind'"])
async def test_an_added_event_is_detected(home: Home, clock: FakeClock, place: str) -> None:
    store = await SqliteStore.start(home, clock=clock)
    parent = await store.create(opened())
    await parent.append(*turn(1))
    fork = await store.fork(parent.session, at=3, opened=opened())
    await parent.append(said(2))
    await store.close()
    columns = "at_ms, hash, body FROM event WHERE seq = 2"
    statement(
        home,
        f"INSERT INTO event (session, seq, at_ms, hash, body) SELECT '{fork.session}', {place}, {columns}",
    )
    store = await SqliteStore.start(home, clock=clock)
    assert [problem.what for problem in (await store.verify(fork.session)).problems] == ["added"]
    assert (await store.verify(parent.session)).is_intact
    await store.close()


async def test_a_fork_after_a_lost_event_reports_only_that_event(home: Home, clock: FakeClock) -> None:
    store = await SqliteStore.start(home, clock=clock)
    parent = await store.create(opened())
    await parent.append(*turn(1))
    fork = await store.fork(parent.session, at=3, opened=opened())
    await store.close()
    statement(home, f"DELETE FROM event WHERE session = '{parent.session}' AND seq = 3")
    store = await SqliteStore.start(home, clock=clock)
    assert (await store.verify(fork.session)).problems == (JournalProblem(seq=3, what="missing"),)
    await store.close()


async def test_a_duplicated_event_is_salvaged_once(home: Home, clock: FakeClock) -> None:
    written = await fill(home, clock, sessions=2)
    statement(home, "DROP INDEX event_place")
    statement(
        home,
        "INSERT INTO event (session, seq, at_ms, hash, body) SELECT session, seq, at_ms, hash, body FROM event LIMIT 3",
    )
    store = await SqliteStore.start(home, clock=clock)
    for session, expected in written.items():
        assert await texts(store, session) == expected
    assert len(store.notices) == 1
    await store.close()


async def test_two_swapped_events_are_detected(home: Home, clock: FakeClock) -> None:
    store = await SqliteStore.start(home, clock=clock)
    journal = await store.create(opened())
    await journal.append(said(1, "a"), said(2, "b"))
    await store.close()
    statement(home, "UPDATE event SET seq = 0 WHERE seq = 2")
    statement(home, "UPDATE event SET seq = 2 WHERE seq = 3")
    statement(home, "UPDATE event SET seq = 3 WHERE seq = 0")
    store = await SqliteStore.start(home, clock=clock)
    found = await store.verify(journal.session)
    assert [problem.what for problem in found.problems] == ["changed", "changed"]
    await store.close()


async def test_a_database_without_its_header_is_salvaged_and_moved_aside(
    home: Home, clock: FakeClock
) -> None:
    written = await fill(home, clock)
    with home.database.open("r+b") as file:
        file.write(b"\0" * 8192)
    store = await SqliteStore.start(home, clock=clock)
    assert {line.id for line in await store.sessions()} == set(written)
    for session, words in written.items():
        assert await texts(store, session) == words
    assert all(found.is_intact for found in await store.verify_all())
    (notice,) = store.notices
    assert "20 sessions saved" in notice
    (aside,) = home.root.glob("damaged-*")
    assert (aside / "holdfast.db").read_bytes()[:4] == b"\0" * 4
    await store.close()
    again = await SqliteStore.start(home, clock=clock)
    assert again.notices == ()
    await again.close()


@pytest.mark.parametrize("keep", [0.35, 0.7, 0.95])
async def test_a_truncated_file_keeps_what_is_left_and_lists_the_rest_as_damaged(
    home: Home, clock: FakeClock, keep: float
) -> None:
    written = await fill(home, clock)
    size = home.database.stat().st_size
    with home.database.open("r+b") as file:
        file.truncate(int(size * keep))
    store = await SqliteStore.start(home, clock=clock)
    lines = {line.id: line for line in await store.sessions()}
    assert len(store.notices) == 1
    assert lines.keys() <= written.keys()
    assert any(line.is_damaged for line in lines.values()) or len(lines) < len(written)
    for id, line in lines.items():
        if not line.is_damaged:
            assert await texts(store, id) == written[id][: line.turns]
    await store.close()


async def test_damage_at_run_time_is_reported_and_salvaged_at_the_next_start(
    home: Home, clock: FakeClock
) -> None:
    written = await fill(home, clock)
    size = home.database.stat().st_size
    dice = random.Random(3)
    with home.database.open("r+b") as file:
        for _ in range(6):
            file.seek(dice.randrange(4096 * 8, size - 4096) // 4096 * 4096)
            file.write(b"\xff" * 4096)
    store = await SqliteStore.start(home, clock=clock)
    damaged = 0
    for session in written:
        try:
            await texts(store, session)
        except (JournalDamaged, SessionNotFound):
            damaged += 1
    await store.close()
    assert damaged
    store = await SqliteStore.start(home, clock=clock)
    intact = [found for found in await store.verify_all() if found.is_intact]
    assert len(intact) >= len(written) - damaged
    await store.close()


async def test_a_file_without_readable_rows_is_left_unchanged(home: Home, clock: FakeClock) -> None:
    home.prepare()
    noise = random.Random(1).randbytes(200_000)
    home.database.write_bytes(noise)
    with pytest.raises(JournalDamaged):
        await SqliteStore.start(home, clock=clock)
    assert home.database.read_bytes() == noise


async def test_blobs_and_tombstones_are_salvaged_too(home: Home, clock: FakeClock) -> None:
    store = await SqliteStore.start(home, clock=clock)
    parent = await store.create(opened())
    large = b"large" * 400_000
    await parent.append(Noted(code="n", text="n"), blobs=[b"small", large])
    fork = await store.fork(parent.session, at=2, opened=opened())
    gone = await store.create(opened())
    for journal in (parent, gone):
        await journal.release()
        await store.delete(journal.session)
    await store.close()
    with home.database.open("r+b") as file:
        file.write(b"\0" * 4096)
    store = await SqliteStore.start(home, clock=clock)
    assert [line.id for line in await store.sessions()] == [fork.session]
    assert len(await store.read(fork.session)) == 3
    assert await store.blob(digest_bytes(b"small")) == b"small"
    assert await store.blob(digest_bytes(large)) == large
    await store.close()


async def test_an_interrupted_salvage_is_finished_at_the_next_start(
    home: Home, clock: FakeClock, tmp_path: Path
) -> None:
    written = await fill(home, clock, sessions=3)
    home.database.rename(home.root / "holdfast.db-ready")
    home.database.write_bytes(b"half a database")
    store = await SqliteStore.start(home, clock=clock)
    assert {line.id for line in await store.sessions()} == set(written)
    await store.close()


async def test_a_session_recreated_after_its_deletion_is_salvaged(
    home: Home, clock: FakeClock, tmp_path: Path
) -> None:
    written = await fill(home, clock, sessions=3)
    session = next(iter(written))
    store = await SqliteStore.start(home, clock=clock)
    await store.export_session(session, tmp_path / "it.zip", now_ms=0)
    await store.delete(session)
    await store.import_session(tmp_path / "it.zip", now_ms=0)
    await store.close()
    with home.database.open("r+b") as file:
        file.write(b"\0" * 4096)
    store = await SqliteStore.start(home, clock=clock)
    assert await texts(store, session) == written[session]
    assert all(found.is_intact for found in await store.verify_all())
    await store.close()


async def test_incomplete_and_lost_sessions_are_listed_as_damaged_after_a_salvage(
    home: Home, clock: FakeClock
) -> None:
    written = await fill(home, clock, sessions=3)
    whole, end, intact = written
    content = bytearray(home.database.read_bytes())
    for link in (*hashes(home, whole, 1), *hashes(home, end, 3)):
        content[content.index(link) - 30 : content.index(link)] = bytes(30)
    home.database.write_bytes(bytes(4096) + content[4096:])
    store = await SqliteStore.start(home, clock=clock)
    found = {one.session: one.problems for one in await store.verify_all()}
    assert found == {
        intact: (),
        end: (JournalProblem(seq=3, what="missing", count=2),),
        whole: (JournalProblem(seq=1, what="missing", count=4),),
    }
    assert {line.id for line in await store.sessions() if line.is_damaged} == {whole, end}
    with pytest.raises(JournalDamaged):
        await store.read(whole)
    await store.delete(whole)
    await store.close()


def hashes(home: Home, session: SessionId, seq: int) -> list[bytes]:
    """The events of a session from one on, each in its own row."""
    connection = sqlite3.connect(home.database)
    rows = connection.execute(
        "SELECT hash FROM event WHERE session = ? AND seq >= ?", (session, seq)
    ).fetchall()
    connection.close()
    return [link for (link,) in rows]


async def test_an_invalid_string_is_reported(home: Home, clock: FakeClock) -> None:
    session, other = await fill(home, clock, sessions=2)
    content = home.database.read_bytes()
    home.database.write_bytes(content.replace(b"0 first", b"0 f\xffrst"))
    store = await SqliteStore.start(home, clock=clock)
    found = await store.verify(session)
    assert [problem.what for problem in found.problems] == ["changed", "unreadable"]
    assert (await store.verify(other)).is_intact
    await store.close()


async def test_one_wrong_summary_among_many_is_fixed_when_it_is_read(home: Home, clock: FakeClock) -> None:
    written = await fill(home, clock, sessions=5)
    middle = list(written)[2]
    statement(home, f"UPDATE session SET tally = 'wrong' WHERE id = '{middle}'")
    store = await SqliteStore.start(home, clock=clock)
    assert {line.id for line in await store.sessions()} == set(written)
    assert len(store.notices) == 1
    await store.close()


async def test_verify_rebuilds_a_wrong_database_index(home: Home, clock: FakeClock) -> None:
    written = await fill(home, clock, sessions=2)
    session = next(iter(written))
    connection = sqlite3.connect(home.database)
    (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'event_place'").fetchone()
    (size,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    content = bytearray(home.database.read_bytes())
    at = content.index(session.encode(), (page - 1) * size, page * size)
    content[at : at + 4] = b"3000"
    home.database.write_bytes(content)
    store = await SqliteStore.start(home, clock=clock)
    assert (await store.verify(session)).is_intact
    assert await texts(store, session) == written[session]
    assert len(await store.sessions()) == 2
    await store.close()


async def test_commits_after_a_damaged_frame_are_salvaged_and_reported(
    home: Home, clock: FakeClock, tmp_path: Path
) -> None:
    store = await SqliteStore.start(home, clock=clock)
    journal = await store.create(opened())
    for number in range(20):
        await journal.append(said(number, f"text {number}"))
    killed = shutil.copytree(home.root, tmp_path / "killed", ignore=shutil.ignore_patterns("holders"))
    await store.close()
    log = killed / "holdfast.db-wal"
    content = bytearray(log.read_bytes())
    content[content.index(b"text 10")] ^= 1
    log.write_bytes(content)
    store = await SqliteStore.start(Home(killed), clock=clock)
    (notice,) = store.notices
    assert "1 session saved" in notice
    assert await texts(store, journal.session) == [f"text {number}" for number in range(20)]
    await store.close()


GONE: dict[str, Callable[[Path], None]] = {
    "removed": Path.unlink,
    "cut to nothing": lambda path: os.truncate(path, 0),
}


@pytest.mark.parametrize("way", GONE)
async def test_commits_in_the_log_survive_the_loss_of_the_database(
    home: Home, clock: FakeClock, tmp_path: Path, way: str
) -> None:
    store = await SqliteStore.start(home, clock=clock)
    journal = await store.create(opened())
    await journal.append(said(1, "acknowledged"))
    killed = shutil.copytree(home.root, tmp_path / "killed", ignore=shutil.ignore_patterns("holders"))
    await store.close()
    GONE[way](killed / "holdfast.db")
    store = await SqliteStore.start(Home(killed), clock=clock)
    assert "the database was missing: 1 session saved, 0 damaged" in store.notices[0]
    assert await texts(store, journal.session) == ["acknowledged"]
    assert (await store.verify(journal.session)).is_intact
    await store.close()


@pytest.mark.parametrize("way", GONE)
async def test_sessions_with_only_a_folder_are_listed_as_damaged(
    home: Home, clock: FakeClock, way: str
) -> None:
    written = await fill(home, clock, sessions=2)
    for session in written:
        home.prepare_session(session)
    (home.root / "sessions" / "index").mkdir()
    GONE[way](home.database)
    store = await SqliteStore.start(home, clock=clock)
    assert "the database was missing: 0 sessions saved, 2 damaged" in store.notices[0]
    await store.rebuild_index()
    assert {(line.id, line.is_damaged) for line in await store.sessions()} == {(id, True) for id in written}
    assert [found.problems for found in await store.verify_all()] == [
        (JournalProblem(seq=1, what="missing"),)
    ] * 2
    for session in written:
        await store.delete(session)
    await store.close()
    store = await SqliteStore.start(home, clock=clock)
    assert (list(await store.sessions()), store.notices) == ([], ())
    await store.close()


async def test_a_removed_database_that_is_still_open_is_not_replaced(home: Home, clock: FakeClock) -> None:
    written = await fill(home, clock, sessions=1)
    for session in written:
        home.prepare_session(session)
    store = await SqliteStore.start(home, clock=clock)
    aside = home.database.rename(home.root / "aside.db")
    with pytest.raises(StoreUnavailable, match="was removed while"):
        await SqliteStore.start(home, clock=clock)
    assert not home.database.exists()
    aside.rename(home.database)
    await store.close()
    store = await SqliteStore.start(home, clock=clock)
    assert ([line.id for line in await store.sessions()], store.notices) == (list(written), ())
    await store.close()


async def test_a_dangling_symlink_is_not_a_missing_database(home: Home, clock: FakeClock) -> None:
    (session,) = await fill(home, clock, sessions=1)
    home.prepare_session(session)
    home.database.unlink()
    home.database.symlink_to("/not/mounted/holdfast.db")
    with pytest.raises(StoreUnavailable):
        await SqliteStore.start(home, clock=clock)
    assert home.database.is_symlink()


async def test_an_unreadable_database_is_left_without_a_draft(home: Home, clock: FakeClock) -> None:
    home.prepare()
    garbage = random.Random(7).randbytes(100_000)
    home.database.write_bytes(garbage)
    with pytest.raises(JournalDamaged):
        await SqliteStore.start(home, clock=clock)
    assert home.database.read_bytes() == garbage
    assert list(home.root.glob("holdfast.db-*")) == []


@pytest.mark.parametrize("column", [b"hash    BLOB", b"body    BLOB", b"seq     INTEGER", b"tally      BLOB"])
async def test_a_column_whose_name_was_damaged_is_salvaged(
    home: Home, clock: FakeClock, column: bytes
) -> None:
    written = await fill(home, clock, sessions=3)
    content = home.database.read_bytes()
    assert content.count(column) == 1
    home.database.write_bytes(content.replace(column, column.replace(column[1:2], b"3", 1)))
    store = await SqliteStore.start(home, clock=clock)
    assert "damaged" in store.notices[0]
    assert {session: await texts(store, session) for session in written} == written
    await store.close()


async def test_a_session_without_events_is_not_intact(home: Home, clock: FakeClock) -> None:
    (session,) = await fill(home, clock, sessions=1)
    statement(home, "DELETE FROM event")
    statement(home, "UPDATE session SET tally = replace(CAST(tally AS TEXT), '\"events\":4', '\"events\":0')")
    connection = connect(home.database)
    found, readable = inspect(connection, session)
    connection.close()
    assert readable == []
    assert found.problems == (JournalProblem(seq=1, what="missing"),)


async def test_a_schema_with_invalid_text_is_salvaged(home: Home, clock: FakeClock) -> None:
    written = await fill(home, clock, sessions=2)
    content = home.database.read_bytes()
    home.database.write_bytes(content.replace(b"CREATE TABLE event", b"CREATE TABL\xa0 event", 1))
    store = await SqliteStore.start(home, clock=clock)
    assert {line.id for line in await store.sessions()} == set(written)
    assert len(store.notices) == 1
    await store.close()


@pytest.mark.parametrize("way", ["find", "read", "summary"])
async def test_a_session_missing_from_the_list_is_found(home: Home, clock: FakeClock, way: str) -> None:
    written = await fill(home, clock, sessions=3)
    lost = next(iter(written))
    statement(home, f"DELETE FROM session WHERE id = '{lost}'")
    store = await SqliteStore.start(home, clock=clock)
    match way:
        case "find":
            assert await store.find(lost) == lost
        case "read":
            assert await texts(store, lost) == written[lost]
        case _:
            assert (await store.summary(lost)).turns == 3
    assert len(store.notices) == 1
    assert len(await store.sessions()) == 3
    await store.close()


async def test_a_summary_of_another_session_is_fixed_when_it_is_read(home: Home, clock: FakeClock) -> None:
    written = await fill(home, clock, sessions=2)
    session = next(iter(written))
    statement(
        home,
        f"UPDATE session SET tally = replace(CAST(tally AS TEXT), '{session}', 'another') WHERE id = '{session}'",
    )
    store = await SqliteStore.start(home, clock=clock)
    journal = await store.open(session)
    assert len(journal.recorded) == 4
    assert {line.id for line in await store.sessions()} == set(written)
    assert len(store.notices) == 1
    await store.close()


class Traced(SqliteStore):
    """Records the statements that run during a read."""

    statements: list[str]

    async def reading(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        def noted(connection: sqlite3.Connection) -> Result:
            connection.set_trace_callback(self.statements.append)
            return work(connection)

        return await super().reading(noted)


async def test_verify_all_checks_the_whole_file_once(home: Home, clock: FakeClock) -> None:
    await fill(home, clock, sessions=5)
    statement(home, "UPDATE event SET at_ms = at_ms + 1 WHERE seq = 2")
    Traced.statements = []
    store = await Traced.start(home, clock=clock)
    assert [found.is_intact for found in await store.verify_all()] == [False] * 5
    assert sum("integrity_check" in each for each in Traced.statements) == 1
    assert all(line.is_damaged for line in await store.sessions())
    await store.close()
