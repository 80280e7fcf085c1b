"""Deleting a session leaves nothing of it in the data directory but its tombstone."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.cli.commands import Run, holdfast, holdfast_process, run
from tests.cli.terminals import prepared, runs, terminal
from tests.store.sample_events import opened, turn

import holdfast.workspace as workspace
from holdfast.core import SessionId, SystemClock
from holdfast.store import Home, open_store

__all__ = ["run"]

WORD = b"canary7f3a"


def holding(home: Path) -> list[str]:
    """The files of a data directory that contain the canary, in their name or content."""
    found = []
    for path in sorted(home.rglob("*")):
        if WORD.decode() in path.name or (path.is_file() and WORD in path.read_bytes()):
            found.append(str(path.relative_to(home)))
    return found


def test_f06_a_deleted_session_is_nowhere_in_the_data_directory(run: Run, tmp_path: Path) -> None:
    home, word = tmp_path / "holdfast", WORD.decode()
    (tmp_path / "code.py").write_text(
        f"kept = '{word}'\nopen('{word}.txt', 'w').write(('{word} ' * 40 + '\\n') * 4000)\nprint(kept)\nkept"
    )
    (tmp_path / "other.py").write_text("print('stays')")
    assert run("exec", "other.py").code == 0
    for _ in range(2):
        assert run("exec", "code.py", "--json").code == 0
        assert word in run("search", word).out, "the search index knows it"
        session = json.loads(run("sessions", "--json").out)[0]["id"]
        run("proposals", "commit", session)
        copy = (
            Home(home).copies(SessionId(session)) / "point"
        )  # `files` makes it where machines share a store
        copy.mkdir(parents=True)
        (copy / "a.txt").write_bytes(WORD)
        assert holding(home), "the canary is there before"
        assert run("delete", session, "--yes").code == 0
    assert holding(home) == []
    assert len(json.loads(run("sessions", "--json").out)) == 1, "the other session stays"


def test_f06_what_was_typed_and_answered_in_a_deleted_chat_is_nowhere(tmp_path: Path) -> None:
    home, word = tmp_path / "holdfast", WORD.decode()
    writes = runs(f"open('{word}', 'w').write('{word}')\nprint('{word}')", word)
    with terminal(*prepared(tmp_path, writes, f"{word} done."), "-n", "chat", home=tmp_path) as user:
        assert user.wait_for("/help")
        for line, shown in (("/sessions", "ready"), (f"write {word}", f"{word} done.")):
            user.type(f"{line}\r")
            assert user.wait_for(shown)
        assert user.end("\x04") == 0
    assert word in (home / "history").read_text()
    assert holdfast("delete", "chat", "--yes", home=tmp_path).returncode == 0
    assert holding(home) == []
    assert "+/sessions" in (home / "history").read_text().splitlines(), "the rest of the history stays"


async def test_f06_the_log_of_the_database_is_emptied_while_another_process_has_it_open(
    tmp_path: Path,
) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    other = await open_store(home, clock=SystemClock())
    store = await open_store(home, clock=SystemClock())
    session = await store.create(opened(name="gone"))
    await session.append(*turn(1, WORD.decode() * 1000))
    await session.release()
    assert await other.search(WORD.decode())
    await store.delete(session.session)
    assert holding(home.root) == []
    await store.close()
    await other.close()


async def test_f06_the_database_is_rebuilt_without_the_pages_of_what_was_deleted(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    store = await open_store(home, clock=SystemClock())
    journals = [await store.create(opened()) for _ in range(2)]
    for journal in journals:
        await journal.append(*turn(1, WORD.decode() * 3000))
    await journals[0].release()
    await store.delete(journals[0].session)
    await journals[1].append(*turn(2, "more"))
    await journals[1].release()
    assert (await store.verify(journals[1].session)).is_intact
    await store.close()
    with closing(sqlite3.connect(home.database)) as database:
        assert database.execute("PRAGMA freelist_count").fetchone() == (0,)


async def test_f06_a_deleted_session_of_a_team_leaves_neither_transcript_nor_queue(tmp_path: Path) -> None:
    home = Home(tmp_path / "holdfast")
    home.prepare()
    id, queue = SessionId("team-0123456789abcdef"), SessionId("mail-0123456789abcdef")
    store = await open_store(home, clock=SystemClock())
    for each in (id, queue):
        journal = await store.create(opened(), session=each)
        await journal.append(*turn(1, WORD.decode()))
        await journal.release()
    await store.close()
    transcript = home.root / "teams" / "default" / "pairs" / id / "config" / "projects" / "p" / "c.jsonl"
    transcript.parent.mkdir(parents=True)
    transcript.write_bytes(WORD)
    done = await asyncio.to_thread(holdfast_process, "delete", id, "--yes", home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert holding(home.root) == []


def test_f06_a_deleted_workspace_leaves_no_copy_of_its_files(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    made = workspace.create(home=home)
    workspace.write(made.session, "a.txt", WORD, home=home)
    folder = home.session_folder(made.session)
    (folder / "view").mkdir()
    (folder / "view" / "a.txt").write_bytes(WORD)
    workspace.delete(made.session, home=home)
    assert holding(home.root) == []
    workspace.delete(made.session, home=home)
